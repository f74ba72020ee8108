# `cmake --install` and the Debian package (cpack in the build folder).
# Below the prefix everything has its usual place; with the prefix /usr the module and its configuration are where Debian's Apache looks.
set(data_dir ${CMAKE_INSTALL_DATADIR}/mapcache)
set(httpd_modules lib/apache2/modules)
set(MAPCACHE_HTTPD_MODULES /usr/${httpd_modules} CACHE PATH "Where mapcache-server.load says that the module is")

install(TARGETS core LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/mapcache DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS mapcache mapcache.fcgi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(CODE "file(CREATE_LINK mapcache \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/mapcache_seed SYMBOLIC)")
install(CODE "file(CREATE_LINK mapcache \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/mapcache_detail SYMBOLIC)")
# Manual pages and completions, which the program has written (cli/CMakeLists.txt).
set(made ${CMAKE_BINARY_DIR}/manual)
install(CODE "
    file(GLOB pages \"${made}/man/*\")
    foreach(page \${pages})
        string(REGEX MATCH \"[0-9]$\" section \${page})
        get_filename_component(name \${page} NAME)
        set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man\${section}\")
        file(MAKE_DIRECTORY \${folder})
        execute_process(COMMAND gzip -9nc \${page} OUTPUT_FILE \${folder}/\${name}.gz COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
set(bash_completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
set(fish_completions ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${made}/completions/mapcache.bash DESTINATION ${bash_completions} RENAME mapcache)
install(FILES ${made}/completions/_mapcache DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${made}/completions/mapcache.fish DESTINATION ${fish_completions})
foreach(name seed detail) # shells look for a file of the program's name
    install(CODE "
        set(prefix \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX})
        file(CREATE_LINK mapcache \${prefix}/${bash_completions}/mapcache_${name} SYMBOLIC)
        file(CREATE_LINK mapcache.fish \${prefix}/${fish_completions}/mapcache_${name}.fish SYMBOLIC)")
endforeach()
# Where Debian's mapcache-cgi has its program.
install(CODE "
    file(MAKE_DIRECTORY \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/cgi-bin)
    file(CREATE_LINK ../../${CMAKE_INSTALL_BINDIR}/mapcache.fcgi \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/cgi-bin/mapcache SYMBOLIC)")
foreach(name bdb brotli curl gdal gif json lmdb postgres proj svg text tiff tls webp zstd)
    if(TARGET mapcache-${name})
        install(TARGETS mapcache-${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mapcache)
    endif()
endforeach()
if(TARGET mapcache-mapserver)
    install(TARGETS mapcache-mapserver RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/mapcache)
endif()
install(TARGETS mod_mapcache LIBRARY DESTINATION ${httpd_modules})

configure_file(${CMAKE_CURRENT_LIST_DIR}/mapcache-server.load.in ${CMAKE_BINARY_DIR}/mapcache-server.load @ONLY)
install(CODE "
    set(etc \${CMAKE_INSTALL_PREFIX}/etc)
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
        set(etc /etc)
    endif()
    file(INSTALL DESTINATION \${etc}/apache2/mods-available TYPE FILE
         FILES \"${CMAKE_BINARY_DIR}/mapcache-server.load\" \"${CMAKE_CURRENT_LIST_DIR}/mapcache-server.conf\")")

include(cmake/systemd/install.cmake)

# Where the pc file is: the prefix is found from there, so that the tree may be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/mapcache.pc.in ${CMAKE_BINARY_DIR}/mapcache.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mapcache.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The documents, with the pictures and files that they lead to, so that no link is dead.
install(FILES README.md LICENSE SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(file benchmarks/README.md lib/rooms.txt tests/README.md tests/faults/README.md)
    get_filename_component(folder ${file} DIRECTORY)
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(FILES mapcache.xml.sample DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg" PATTERN "*.json")
execute_process(COMMAND gzip -9nc ${CMAKE_CURRENT_LIST_DIR}/debian/changelog OUTPUT_FILE ${CMAKE_BINARY_DIR}/changelog.gz
                COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_CURRENT_LIST_DIR}/debian/lintian-overrides DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME mapcache)
# What the pages draw maps with, once script/bootstrap has fetched it; their licences stand with ours in the file copyright.
set(page_libraries ol maplibre-gl proj4)
foreach(library ${page_libraries})
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/build/assets/${library} DESTINATION ${data_dir} OPTIONAL)
endforeach()
install(CODE "
    file(READ \"${CMAKE_SOURCE_DIR}/LICENSE\" text)
    foreach(library ${page_libraries})
        file(GLOB licence \"${CMAKE_SOURCE_DIR}/build/assets/\${library}/LICENSE*\")
        if(licence)
            file(READ \${licence} more)
            string(APPEND text \"\\n\\nFiles: ${CMAKE_INSTALL_DATADIR}/mapcache/\${library}/* (npm package \${library})\\n\\n\${more}\")
        endif()
    endforeach()
    file(WRITE \"${CMAKE_BINARY_DIR}/copyright\" \"\${text}\")")
install(FILES ${CMAKE_BINARY_DIR}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mapcache)
set(CPACK_PACKAGE_VENDOR "the mapcache authors")
set(MAPCACHE_MAINTAINER "the mapcache authors <mapcache@localhost>" CACHE STRING "Who answers for the package: name and mail address")
set(CPACK_PACKAGE_CONTACT "${MAPCACHE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tile and map server: Apache module, FastCGI program and command line")
set(CPACK_PACKAGE_DESCRIPTION "Serves WMS, WMTS, TMS, XYZ and KML from stored tiles and renders those
that are missing, from PostGIS, shapefiles, rasters and other servers.
It takes the place of OSGeo MapCache: the same configuration files, URLs,
Apache directive, seeder options and caches.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION httpd)
# The module fits to Apaches of that interface; who has nginx or wants the command line alone needs no Apache.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "apache2-api-20120211 | nginx | spawn-fcgi")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "apache2 | nginx, fonts-liberation, fonts-noto-core")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gdal-bin, postgresql-postgis, cgi-mapserver")
# Debian's packages of the same files and programs.
set(CPACK_DEBIAN_PACKAGE_CONFLICTS "libapache2-mod-mapcache, mapcache-cgi, mapcache-tools, libmapcache1-dev, libmapcache-dev")
set(CPACK_DEBIAN_PACKAGE_REPLACES "${CPACK_DEBIAN_PACKAGE_CONFLICTS}")
set(CPACK_DEBIAN_PACKAGE_PROVIDES "libapache2-mod-mapcache, mapcache-cgi, mapcache-tools")
set(debian ${CMAKE_CURRENT_LIST_DIR}/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/conffiles ${debian}/triggers ${debian}/postinst
    ${debian}/prerm ${debian}/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
