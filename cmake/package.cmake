# `cmake --install` and the Debian package (cpack in the build folder).
# Below the prefix everything has its usual place; with the prefix /usr the module and its configuration are where Debian's Apache looks.
set(data_dir ${CMAKE_INSTALL_DATADIR}/mapcache)
set(httpd_modules lib/apache2/modules)
set(MAPCACHE_HTTPD_MODULES /usr/${httpd_modules} CACHE PATH "Where mapcache.load says that the module is")

install(TARGETS core LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/mapcache DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS mapcache mapcache.fcgi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(CODE "file(CREATE_LINK mapcache \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/mapcache_seed SYMBOLIC)")
install(CODE "file(CREATE_LINK mapcache \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/mapcache_detail SYMBOLIC)")
# Manual pages and completions, which the program has written (cli/CMakeLists.txt).
set(made ${CMAKE_BINARY_DIR}/manual)
foreach(section 1 5 8)
    install(DIRECTORY ${made}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} FILES_MATCHING PATTERN "*.${section}")
endforeach()
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
foreach(name curl gdal gif json postgres proj svg text tiff)
    if(TARGET mapcache-${name})
        install(TARGETS mapcache-${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mapcache)
    endif()
endforeach()
install(TARGETS mod_mapcache LIBRARY DESTINATION ${httpd_modules})

configure_file(${CMAKE_CURRENT_LIST_DIR}/mapcache.load.in ${CMAKE_BINARY_DIR}/mapcache.load @ONLY)
install(CODE "
    set(etc \${CMAKE_INSTALL_PREFIX}/etc)
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
        set(etc /etc)
    endif()
    file(INSTALL DESTINATION \${etc}/apache2/mods-available TYPE FILE
         FILES \"${CMAKE_BINARY_DIR}/mapcache.load\" \"${CMAKE_CURRENT_LIST_DIR}/mapcache.conf\")")

# Where the pc file is: the prefix is found from there, so that the tree may be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/mapcache.pc.in ${CMAKE_BINARY_DIR}/mapcache.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mapcache.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES mapcache.xml.sample DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
# OpenLayers for the demo pages, once script/bootstrap has fetched it.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/build/assets/ol DESTINATION ${data_dir} OPTIONAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mapcache)
set(CPACK_PACKAGE_VENDOR "the mapcache authors")
set(CPACK_PACKAGE_CONTACT "the mapcache authors <mapcache@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "tile and map server: Apache module, FastCGI program and command line")
set(CPACK_PACKAGE_DESCRIPTION "Serves WMS, WMTS, TMS, XYZ and KML from stored tiles and renders those that are missing.
It takes the place of OSGeo MapCache: the same configuration files, URLs, Apache directive, seeder options and caches.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION httpd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "apache2 | nginx, fonts-liberation, fonts-noto-core")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "spawn-fcgi, gdal-bin")
# Debian's packages of the same files and programs.
set(CPACK_DEBIAN_PACKAGE_CONFLICTS "libapache2-mod-mapcache, mapcache-cgi, mapcache-tools, libmapcache1-dev, libmapcache-dev")
set(CPACK_DEBIAN_PACKAGE_REPLACES "${CPACK_DEBIAN_PACKAGE_CONFLICTS}")
set(CPACK_DEBIAN_PACKAGE_PROVIDES "libapache2-mod-mapcache, mapcache-cgi, mapcache-tools")
set(debian ${CMAKE_CURRENT_LIST_DIR}/debian)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${debian}/conffiles ${debian}/triggers ${debian}/postinst
    ${debian}/prerm ${debian}/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
