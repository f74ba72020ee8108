<StyledLayerDescriptor version="1.1.0" xmlns="http://www.opengis.net/sld" xmlns:se="http://www.opengis.net/se" xmlns:ogc="http://www.opengis.net/ogc" xmlns:xlink="http://www.w3.org/1999/xlink"><NamedLayer><se:Name>a</se:Name><UserStyle><se:FeatureTypeStyle><se:Rule>
<se:PointSymbolizer><se:Graphic><se:Mark><se:WellKnownName>ttf://DejaVu Sans#0x2708</se:WellKnownName><se:Fill/><se:Stroke/></se:Mark><se:Size>15</se:Size></se:Graphic></se:PointSymbolizer>
<se:PointSymbolizer><se:Graphic><se:Mark><se:OnlineResource xlink:href="ttf://DejaVu Sans"/><se:Format>ttf</se:Format><se:MarkIndex>65</se:MarkIndex><se:Fill/></se:Mark></se:Graphic></se:PointSymbolizer>
<se:TextSymbolizer><se:Label><ogc:PropertyName>ref</ogc:PropertyName></se:Label>
<se:LabelPlacement><se:PointPlacement><se:AnchorPoint><se:AnchorPointX>0.5</se:AnchorPointX><se:AnchorPointY>0.5</se:AnchorPointY></se:AnchorPoint></se:PointPlacement></se:LabelPlacement>
<se:Graphic><se:Mark><se:WellKnownName>shield</se:WellKnownName><se:Fill><se:SvgParameter name="fill">#ffffff</se:SvgParameter></se:Fill><se:Stroke/></se:Mark><se:Size><ogc:PropertyName>size</ogc:PropertyName></se:Size></se:Graphic>
<se:VendorOption name="graphic-resize">stretch</se:VendorOption><se:VendorOption name="graphic-margin">2 5</se:VendorOption></se:TextSymbolizer>
</se:Rule></se:FeatureTypeStyle></UserStyle></NamedLayer></StyledLayerDescriptor>
