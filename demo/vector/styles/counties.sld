<?xml version="1.0" encoding="UTF-8"?>
<!-- Counties of the United States: pale neighbours, counties in the colour of their state, limits by rank, names. One user style for each layer;
     sea, graticule and shores are those of world.sld. -->
<StyledLayerDescriptor version="1.1.0" xmlns="http://www.opengis.net/sld" xmlns:se="http://www.opengis.net/se" xmlns:ogc="http://www.opengis.net/ogc">
  <NamedLayer>
    <se:Name>countries</se:Name>
    <UserStyle>
      <se:Name>abroad</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Neighbour</se:Name>
          <se:PolygonSymbolizer><se:Fill><se:SvgParameter name="fill">#eeece8</se:SvgParameter></se:Fill></se:PolygonSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>counties</se:Name>
    <UserStyle>
      <se:Name>counties</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>County</se:Name>
          <se:PolygonSymbolizer><se:Fill><se:SvgParameter name="fill">
              <se:Recode fallbackValue="#eeeeee">
                <se:LookupValue><ogc:PropertyName>colour</ogc:PropertyName></se:LookupValue>
                <se:MapItem><se:Data>0</se:Data><se:Value>#f7e6c4</se:Value></se:MapItem>
                <se:MapItem><se:Data>1</se:Data><se:Value>#dde8c3</se:Value></se:MapItem>
                <se:MapItem><se:Data>2</se:Data><se:Value>#f3d6c9</se:Value></se:MapItem>
                <se:MapItem><se:Data>3</se:Data><se:Value>#e3d9e8</se:Value></se:MapItem>
                <se:MapItem><se:Data>4</se:Data><se:Value>#fbf3cf</se:Value></se:MapItem>
              </se:Recode>
            </se:SvgParameter></se:Fill></se:PolygonSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>limits</se:Name>
    <UserStyle>
      <!-- Casings lie under all lines of the pass after them. -->
      <se:Name>limits</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Limit of a county</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>county</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MinScaleDenominator>18000001</se:MinScaleDenominator>
          <se:MaxScaleDenominator>60000000</se:MaxScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#c3a992</se:SvgParameter><se:SvgParameter name="stroke-width">0.35</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Limit of a county</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>county</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MaxScaleDenominator>18000001</se:MaxScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#b3977f</se:SvgParameter><se:SvgParameter name="stroke-width">0.7</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Casing of a state</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>state</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MaxScaleDenominator>18000001</se:MaxScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#ffffff</se:SvgParameter><se:SvgParameter name="stroke-width">4.5</se:SvgParameter><se:SvgParameter name="stroke-opacity">0.75</se:SvgParameter><se:SvgParameter name="stroke-linejoin">round</se:SvgParameter><se:SvgParameter name="stroke-linecap">round</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Limit of a state</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>state</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MinScaleDenominator>18000001</se:MinScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#8a6a58</se:SvgParameter><se:SvgParameter name="stroke-width">0.9</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Limit of a state</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>state</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:MaxScaleDenominator>18000001</se:MaxScaleDenominator>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#8a6a58</se:SvgParameter><se:SvgParameter name="stroke-width">1.6</se:SvgParameter><se:SvgParameter name="stroke-dasharray">9 3 2 3</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Coast and frontier</se:Name>
          <ogc:Filter><ogc:PropertyIsEqualTo><ogc:PropertyName>kind</ogc:PropertyName><ogc:Literal>outside</ogc:Literal></ogc:PropertyIsEqualTo></ogc:Filter>
          <se:LineSymbolizer><se:Stroke><se:SvgParameter name="stroke">#6f9db7</se:SvgParameter><se:SvgParameter name="stroke-width">1</se:SvgParameter></se:Stroke></se:LineSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>state_places</se:Name>
    <UserStyle>
      <se:Name>state names</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Postal code of a state</se:Name>
          <ogc:Filter><ogc:PropertyIsGreaterThanOrEqualTo><ogc:PropertyName>area</ogc:PropertyName><ogc:Literal>30000</ogc:Literal></ogc:PropertyIsGreaterThanOrEqualTo></ogc:Filter>
          <se:MinScaleDenominator>18000001</se:MinScaleDenominator>
          <se:MaxScaleDenominator>60000000</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>code</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-weight">bold</se:SvgParameter><se:SvgParameter name="font-size">11</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:PointPlacement>
              <se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>
            </se:PointPlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1.6</se:Radius><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter><se:SvgParameter name="fill-opacity">0.8</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#6b4b3c</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
        <se:Rule>
          <se:Name>Name of a state</se:Name>
          <se:MinScaleDenominator>4400000</se:MinScaleDenominator>
          <se:MaxScaleDenominator>18000001</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-weight">bold</se:SvgParameter><se:SvgParameter name="font-size">14</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:PointPlacement>
              <se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>
            </se:PointPlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1.6</se:Radius><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter><se:SvgParameter name="fill-opacity">0.8</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#6b4b3c</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>

  <NamedLayer>
    <se:Name>county_places</se:Name>
    <UserStyle>
      <se:Name>county names</se:Name>
      <se:FeatureTypeStyle>
        <se:Rule>
          <se:Name>Name of a county</se:Name>
          <se:MaxScaleDenominator>4400000</se:MaxScaleDenominator>
          <se:TextSymbolizer>
            <se:Label><ogc:PropertyName>name</ogc:PropertyName></se:Label>
            <se:Font><se:SvgParameter name="font-family">DejaVu Sans</se:SvgParameter><se:SvgParameter name="font-size">9.5</se:SvgParameter></se:Font>
            <se:LabelPlacement><se:PointPlacement>
              <se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint>
            </se:PointPlacement></se:LabelPlacement>
            <se:Halo><se:Radius>1.6</se:Radius><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter><se:SvgParameter name="fill-opacity">0.8</se:SvgParameter></se:Fill></se:Halo>
            <se:Fill><se:SvgParameter name="fill">#51433b</se:SvgParameter></se:Fill>
          </se:TextSymbolizer>
        </se:Rule>
      </se:FeatureTypeStyle>
    </UserStyle>
  </NamedLayer>
</StyledLayerDescriptor>
