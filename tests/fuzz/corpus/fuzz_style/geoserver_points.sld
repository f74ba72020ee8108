<?xml version="1.0" encoding="UTF-8"?>
<sld:StyledLayerDescriptor xmlns="http://www.opengis.net/sld" xmlns:sld="http://www.opengis.net/sld" xmlns:gml="http://www.opengis.net/gml" xmlns:ogc="http://www.opengis.net/ogc" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.0.0">
  <!-- Points as GeoServer draws them: graduated marks, files named by the data, an anchor, a spatial filter. -->
  <sld:NamedLayer>
    <sld:Name>places</sld:Name>
    <sld:UserStyle>
      <sld:Name>places</sld:Name>
      <sld:FeatureTypeStyle>
        <sld:Rule>
          <ogc:Filter>
            <ogc:And>
              <ogc:PropertyIsBetween>
                <ogc:PropertyName>size</ogc:PropertyName>
                <ogc:LowerBoundary>
                  <ogc:Literal>0</ogc:Literal>
                </ogc:LowerBoundary>
                <ogc:UpperBoundary>
                  <ogc:Literal>1000</ogc:Literal>
                </ogc:UpperBoundary>
              </ogc:PropertyIsBetween>
              <ogc:BBOX>
                <ogc:PropertyName>the_geom</ogc:PropertyName>
                <gml:Box srsName="EPSG:3857">
                  <gml:coordinates>-1000000,-1000000 1000000,1000000</gml:coordinates>
                </gml:Box>
              </ogc:BBOX>
              <ogc:Not>
                <ogc:PropertyIsNull>
                  <ogc:PropertyName>icon</ogc:PropertyName>
                </ogc:PropertyIsNull>
              </ogc:Not>
            </ogc:And>
          </ogc:Filter>
          <sld:PointSymbolizer>
            <sld:Graphic>
              <sld:Mark>
                <sld:WellKnownName>circle</sld:WellKnownName>
                <sld:Fill>
                  <sld:CssParameter name="fill">
                    <ogc:Function name="Interpolate">
                      <ogc:PropertyName>size</ogc:PropertyName>
                      <ogc:Literal>0</ogc:Literal>
                      <ogc:Literal>#ffffb2</ogc:Literal>
                      <ogc:Literal>100</ogc:Literal>
                      <ogc:Literal>#bd0026</ogc:Literal>
                    </ogc:Function>
                  </sld:CssParameter>
                  <sld:CssParameter name="fill-opacity">0.6</sld:CssParameter>
                </sld:Fill>
                <sld:Stroke>
                  <sld:CssParameter name="stroke">#800026</sld:CssParameter>
                </sld:Stroke>
              </sld:Mark>
              <sld:Size>
                <ogc:Add>
                  <ogc:Literal>10</ogc:Literal>
                  <ogc:Mul>
                    <ogc:Literal>3</ogc:Literal>
                    <ogc:Function name="sqrt">
                      <ogc:PropertyName>size</ogc:PropertyName>
                    </ogc:Function>
                  </ogc:Mul>
                </ogc:Add>
              </sld:Size>
            </sld:Graphic>
          </sld:PointSymbolizer>
          <sld:PointSymbolizer>
            <sld:Graphic>
              <sld:ExternalGraphic>
                <sld:OnlineResource xlink:type="simple" xlink:href="${icon}.png"/>
                <sld:Format>image/png</sld:Format>
              </sld:ExternalGraphic>
              <sld:Opacity>0.9</sld:Opacity>
              <sld:Size>16</sld:Size>
              <sld:AnchorPoint>
                <sld:AnchorPointX>0.5</sld:AnchorPointX>
                <sld:AnchorPointY>0.0</sld:AnchorPointY>
              </sld:AnchorPoint>
              <sld:Displacement>
                <sld:DisplacementX>0</sld:DisplacementX>
                <sld:DisplacementY>2</sld:DisplacementY>
              </sld:Displacement>
            </sld:Graphic>
          </sld:PointSymbolizer>
        </sld:Rule>
      </sld:FeatureTypeStyle>
    </sld:UserStyle>
  </sld:NamedLayer>
</sld:StyledLayerDescriptor>
