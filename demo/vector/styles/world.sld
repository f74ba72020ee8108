<?xml version="1.0" encoding="UTF-8"?>
<!-- The world: sea, graticule, a glow along the shores, countries in five colours, borders, names. One user style for each layer. -->
<StyledLayerDescriptor version="1.1.0" xmlns="http://www.opengis.net/sld" xmlns:se="http://www.opengis.net/se" xmlns:ogc="http://www.opengis.net/ogc">
  <NamedLayer>
    <se:Name>sea</se:Name>
    <UserStyle>
      <se:Name>sea</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Sea</se:Name>
          <se:PolygonSymbolizer><se:Fill><se:SvgParameter name="fill">#cfe2ec</se:SvgParameter></se:Fill></se:PolygonSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>lines</se:Name>
    <UserStyle>
      <se:Name>graticule</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>30 degrees</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>step</ogc:PropertyName><ogc:Literal>30</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#b3cfdd</se:SvgParameter><se:SvgParameter name="stroke-width">0.8</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>10 degrees</se:Name>
          <ogc:Filter><ogc:And>
            <ogc:PropertyIsEqualTo><ogc:PropertyName>step</ogc:PropertyName><ogc:Literal>10</ogc:Literal></ogc:PropertyIsEqualTo>
            <ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>line</ogc:Literal></ogc:PropertyIsEqualTo>
          </ogc:And></ogc:Filter>
          <se:MaxScaleDenominator>80000000</se:MaxScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#bdd6e3</se:SvgParameter><se:SvgParameter name="stroke-width">0.5</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Tropics and polar circles</se:Name>
          <ogc:Filter><ogc:And>
            <ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>named</ogc:Literal></ogc:PropertyIsEqualTo>
            <ogc:PropertyIsNotEqualTo><ogc:PropertyName>name</ogc:PropertyName><ogc:Literal>Equator</ogc:Literal></ogc:PropertyIsNotEqualTo>
          </ogc:And></ogc:Filter>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#94b9cc</se:SvgParameter><se:SvgParameter name="stroke-width">0.8</se:SvgParameter><se:SvgParameter name="stroke-dasharray">7 4</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Names of circles</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>named</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MaxScaleDenominator>160000000</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-style">italic</se:SvgParameter><se:SvgParameter name="font-size">10</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:LinePlacement><se:PerpendicularOffset>6</se:PerpendicularOffset></se:LinePlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1</se:Radius><se:Fill><se:SvgParameter name="fill">#cfe2ec</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#5f8ba3</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>borders</se:Name>
    <UserStyle>
      <!-- Below the land, so that only its half on the water shows. -->
      <se:Name>shores</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Shallow water</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>coast</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MaxScaleDenominator>80000000</se:MaxScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#c0d9e6</se:SvgParameter><se:SvgParameter name="stroke-width">11</se:SvgParameter><se:SvgParameter name="stroke-linejoin">round</se:SvgParameter><se:SvgParameter name="stroke-linecap">round</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Shore</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>coast</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#aecfe0</se:SvgParameter><se:SvgParameter name="stroke-width">5</se:SvgParameter><se:SvgParameter name="stroke-linejoin">round</se:SvgParameter><se:SvgParameter name="stroke-linecap">round</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>countries</se:Name>
    <UserStyle>
      <se:Name>countries</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Country</se:Name>
          <ogc:Filter><ogc:Not><ogc:PropertyIsEqualTo><ogc:PropertyName>iso</ogc:PropertyName><ogc:Literal>010</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Not></ogc:Filter>
          <se:PolygonSymbolizer>
            <se:Fill><se:SvgParameter name="fill">
              <se:Recode fallbackValue="#eeeeee">
                <se:LookupValue><ogc:PropertyName>colour</ogc:PropertyName></se:LookupValue>
                <se:MapItem><se:Data>0</se:Data><se:Value>#f7e6c4</se:Value></se:MapItem>
                <se:MapItem><se:Data>1</se:Data><se:Value>#dde8c3</se:Value></se:MapItem>
                <se:MapItem><se:Data>2</se:Data><se:Value>#f3d6c9</se:Value></se:MapItem>
                <se:MapItem><se:Data>3</se:Data><se:Value>#e3d9e8</se:Value></se:MapItem>
                <se:MapItem><se:Data>4</se:Data><se:Value>#fbf3cf</se:Value></se:MapItem>
              </se:Recode>
            </se:SvgParameter></se:Fill>
          </se:PolygonSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Ice</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>iso</ogc:PropertyName><ogc:Literal>010</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:PolygonSymbolizer><se:Fill><se:SvgParameter name="fill">#fafcfd</se:SvgParameter></se:Fill></se:PolygonSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Without an ISO 3166 number</se:Name>
          <ogc:Filter><ogc:PropertyIsNull><ogc:PropertyName>iso</ogc:PropertyName></ogc:PropertyIsNull></ogc:Filter>
          <se:PolygonSymbolizer>
            <se:Fill><se:GraphicFill><se:Graphic>
              <se:Mark><se:WellKnownName>shape://slash</se:WellKnownName><se:Stroke><se:SvgParameter name="stroke">#a58a72</se:SvgParameter><se:SvgParameter name="stroke-width">1</se:SvgParameter></se:Stroke></se:Mark>
              <se:Size>8</se:Size>
            </se:Graphic></se:GraphicFill></se:Fill>
          </se:PolygonSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>borders</se:Name>
    <UserStyle>
      <se:Name>borders</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Tint along borders</se:Name>
          <ogc:Filter><ogc:PropertyIsNotEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>coast</ogc:Literal></ogc:PropertyIsNotEqualTo></ogc:Filter>
          <se:MaxScaleDenominator>40000000</se:MaxScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#9b6f96</se:SvgParameter><se:SvgParameter name="stroke-opacity">0.22</se:SvgParameter><se:SvgParameter name="stroke-width">6</se:SvgParameter><se:SvgParameter name="stroke-linejoin">round</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Coast</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>coast</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#6f9db7</se:SvgParameter><se:SvgParameter name="stroke-width">0.8</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Border</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>border</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MinScaleDenominator>40000000</se:MinScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#98708f</se:SvgParameter><se:SvgParameter name="stroke-width">0.7</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Border</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>border</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MaxScaleDenominator>40000000</se:MaxScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#7b4d74</se:SvgParameter><se:SvgParameter name="stroke-width">1.2</se:SvgParameter><se:SvgParameter name="stroke-dasharray">8 2.5 1.5 2.5</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Border without an ISO 3166 number on one side</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>claim</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#98708f</se:SvgParameter><se:SvgParameter name="stroke-width">1</se:SvgParameter><se:SvgParameter name="stroke-dasharray">3 3</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>places</se:Name>
    <UserStyle>
      <se:Name>small</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Country of less than 1000 km²</se:Name>
          <ogc:Filter><ogc:And>
            <ogc:PropertyIsLessThan><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>1000</ogc:Literal></ogc:PropertyIsLessThan>
            <ogc:Not><ogc:PropertyIsNull><ogc:PropertyName>iso</ogc:PropertyName></ogc:PropertyIsNull></ogc:Not>
          </ogc:And></ogc:Filter>
          <se:MinScaleDenominator>2500000</se:MinScaleDenominator>
          <se:MaxScaleDenominator>40000000</se:MaxScaleDenominator>
          <se:PointSymbolizer><se:Graphic>
            <se:Mark>
              <se:WellKnownName>circle</se:WellKnownName>
              <se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter></se:Fill>
              <se:Stroke><se:SvgParameter name="stroke">#7b4d74</se:SvgParameter><se:SvgParameter name="stroke-width">1.2</se:SvgParameter></se:Stroke>
            </se:Mark>
            <se:Size>6</se:Size>
          </se:Graphic></se:PointSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>places</se:Name>
    <UserStyle>
      <!-- The larger the country, the earlier its name. -->
      <se:Name>names</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Name from 1.5 million km² on</se:Name>
          <ogc:Filter><ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>1500000</ogc:Literal></ogc:PropertyIsGreaterThanOrEqualTo></ogc:Filter>
          <se:MaxScaleDenominator>160000000</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-weight">bold</se:SvgParameter><se:SvgParameter name="font-size">12</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:PointPlacement>
              <se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>
            </se:PointPlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1.6</se:Radius><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter><se:SvgParameter name="fill-opacity">0.8</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#4a3a4f</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Name from 250,000 km² on</se:Name>
          <ogc:Filter><ogc:And>
            <ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>250000</ogc:Literal></ogc:PropertyIsGreaterThanOrEqualTo>
            <ogc:PropertyIsLessThan><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>1500000</ogc:Literal></ogc:PropertyIsLessThan>
          </ogc:And></ogc:Filter>
          <se:MaxScaleDenominator>80000000</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-weight">bold</se:SvgParameter><se:SvgParameter name="font-size">11</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:PointPlacement>
              <se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>
            </se:PointPlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1.6</se:Radius><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter><se:SvgParameter name="fill-opacity">0.8</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#4a3a4f</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Name from 30,000 km² on</se:Name>
          <ogc:Filter><ogc:And>
            <ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>30000</ogc:Literal></ogc:PropertyIsGreaterThanOrEqualTo>
            <ogc:PropertyIsLessThan><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>250000</ogc:Literal></ogc:PropertyIsLessThan>
          </ogc:And></ogc:Filter>
          <se:MaxScaleDenominator>40000000</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-size">10</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:PointPlacement>
              <se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>
            </se:PointPlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1.6</se:Radius><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter><se:SvgParameter name="fill-opacity">0.8</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#4a3a4f</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Name from 1000 km² on</se:Name>
          <ogc:Filter><ogc:And>
            <ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>1000</ogc:Literal></ogc:PropertyIsGreaterThanOrEqualTo>
            <ogc:PropertyIsLessThan><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>30000</ogc:Literal></ogc:PropertyIsLessThan>
          </ogc:And></ogc:Filter>
          <se:MaxScaleDenominator>18000000</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-size">10</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:PointPlacement>
              <se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>
            </se:PointPlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1.6</se:Radius><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter><se:SvgParameter name="fill-opacity">0.8</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#5c4b61</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Name of the smallest</se:Name>
          <ogc:Filter><ogc:PropertyIsLessThan><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>1000</ogc:Literal></ogc:PropertyIsLessThan></ogc:Filter>
          <se:MaxScaleDenominator>9000000</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-size">9</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:PointPlacement>
              <se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>
            </se:PointPlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1.6</se:Radius><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter><se:SvgParameter name="fill-opacity">0.8</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#5c4b61</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>
</StyledLayerDescriptor>
