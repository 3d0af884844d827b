//! From values to shapes: legacy coordinates, GeoJSON, and the shapes that only queries have.

use crate::plane::{Circle, PlaneBox, PlanePoint, PlanePolygon};
use crate::sphere::{BigPolygon, Cap, Line, Polygon, Ring, SpherePoint};
use crate::{Geometry, Place, Shapes};
use pando_base::{Error, Result};
use pando_doc::{DocRef, Element, Value};

const CRS_STRICT: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";
const CRS_NAMES: [&str; 2] = ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"];

/// A point, as the crate `s2` has it.
type Vertex = s2::point::Point;

/// What a document holds: a legacy point or GeoJSON.
pub fn parse_stored(value: Value<'_>) -> Result<Geometry> {
    let Some(fields) = value.as_nested() else {
        return Err(Error::bad_value(format!("geo element must be an array or object: {value}")));
    };
    if is_legacy_point(value) {
        let point = flat_point(Some(value), true)?;
        return Ok(Geometry::Point(Place::legacy(point)));
    }
    geojson(fields)
}

/// The point of a query: a legacy one has two coordinates and nothing else.
pub fn parse_query_point(value: Value<'_>) -> Result<Place> {
    let Some(fields) = value.as_nested() else {
        let reason = format!("Point must be an array or object, instead got type {}", value.value_type());
        return Err(Error::bad_value(reason));
    };
    match is_legacy_point(value) {
        true => flat_point(Some(value), false).map(Place::legacy),
        false => geojson_point(fields),
    }
}

/// True if the value is an array, or a document that begins with a number.
pub fn is_legacy_point(value: Value<'_>) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Document(fields) => fields.first().is_some_and(|first| first.value.to_double().is_some()),
        _ => false,
    }
}

/// `{$box: …}` and its kin.
pub(crate) fn parse_query_shape(shape: Element<'_>) -> Result<Geometry> {
    let unknown = || Error::bad_value(format!("unknown geo specifier: {}: {}", shape.name, shape.value));
    let fields = shape.value.as_nested().ok_or_else(unknown)?;
    match &**shape.name {
        b"$box" => {
            let mut corners = fields.elements().map(|element| element.value);
            let (one, two) = (flat_point(corners.next(), false)?, flat_point(corners.next(), false)?);
            Ok(Geometry::Box(PlaneBox::between(one, two)))
        }
        b"$polygon" => {
            let points = fields.elements().map(|element| flat_point(Some(element.value), false));
            let points = points.collect::<Result<Vec<_>>>()?;
            let count = points.len();
            let polygon = PlanePolygon::new(points).ok_or_else(|| {
                let reason = format!("Polygon must have at least 3 points, instead got {count} vertices");
                Error::bad_value(reason)
            })?;
            Ok(Geometry::PlanePolygon(polygon))
        }
        b"$center" => circle(fields).map(Geometry::Circle),
        b"$centerSphere" => {
            let (center, radius) = circle_parts(fields, |center| sphere_point(center).map(|_| ()))?;
            let cap = Cap { center: sphere_point(center)?, radius };
            Ok(Geometry::Cap(cap, Circle { center, radius }))
        }
        b"$geometry" if is_legacy_point(shape.value) => parse_query_point(shape.value).map(Geometry::Point),
        b"$geometry" => geojson(fields),
        _ => Err(unknown()),
    }
}

fn circle(fields: DocRef<'_>) -> Result<Circle> {
    let (center, radius) = circle_parts(fields, |_| Ok(()))?;
    Ok(Circle { center, radius })
}

fn circle_parts(fields: DocRef<'_>, check: impl Fn(PlanePoint) -> Result<()>) -> Result<(PlanePoint, f64)> {
    let mut values = fields.elements().map(|element| element.value);
    let center = flat_point(values.next(), false)?;
    check(center)?;
    let radius = values.next();
    let Some(distance) = radius.and_then(|radius| radius.to_double()).filter(|radius| *radius >= 0.0) else {
        let shown = radius.map_or_else(|| "EOO".to_owned(), |radius| radius.to_string());
        return Err(Error::bad_value(format!("Radius must be a non-negative number: {shown}")));
    };
    if values.next().is_some() {
        let reason = "Only 2 fields allowed for circular region, but more were provided";
        return Err(Error::bad_value(reason));
    }
    Ok((center, distance))
}

fn type_name(value: Option<Value<'_>>) -> String {
    value.map_or_else(|| "missing".to_owned(), |value| value.value_type().to_string())
}

/// Two numbers, and more if they are allowed.
fn flat_point(value: Option<Value<'_>>, allows_more: bool) -> Result<PlanePoint> {
    let Some(fields) = value.and_then(|value| value.as_nested()) else {
        let reason = format!("Point must be an array or object, instead got type {}", type_name(value));
        return Err(Error::bad_value(reason));
    };
    let mut values = fields.elements().map(|element| element.value);
    let mut coordinate = || {
        let value = values.next();
        value.and_then(|value| value.to_double()).ok_or_else(|| {
            let expected = "Point must only contain numeric elements";
            Error::bad_value(format!("{expected}, instead got type {}", type_name(value)))
        })
    };
    let (x, y) = (coordinate()?, coordinate()?);
    if !allows_more && values.next().is_some() {
        return Err(Error::bad_value("Point must only contain two numeric elements"));
    }
    if !x.is_finite() || !y.is_finite() {
        return Err(Error::bad_value("Point coordinates must be finite numbers"));
    }
    Ok(PlanePoint::new(x, y))
}

fn sphere_point(point: PlanePoint) -> Result<SpherePoint> {
    SpherePoint::of_degrees(point.x, point.y).ok_or_else(|| {
        let reason = format!("Longitude/latitude is out of bounds, lng: {} lat: {}", point.x, point.y);
        Error::bad_value(reason)
    })
}

/// `{type: …, coordinates: …}`.
fn geojson(fields: DocRef<'_>) -> Result<Geometry> {
    let kind = geojson_type(fields);
    match kind.as_deref() {
        Some("Point") => geojson_point(fields).map(Geometry::Point),
        Some("GeometryCollection") => collection(fields).map(Geometry::Shapes),
        Some(kind) if is_shape(kind) => {
            let mut shapes = Shapes { is_simple: !kind.starts_with("Multi"), ..Shapes::default() };
            add_shape(kind, fields, &mut shapes)?;
            Ok(Geometry::Shapes(shapes))
        }
        _ => Err(Error::bad_value(format!("unknown GeoJSON type: {fields}"))),
    }
}

fn geojson_type(fields: DocRef<'_>) -> Option<String> {
    match fields.get("type") {
        Some(Value::String(kind)) => Some(kind.to_string()),
        _ => None,
    }
}

fn is_shape(kind: &str) -> bool {
    matches!(kind, "Point" | "LineString" | "Polygon" | "MultiPoint" | "MultiLineString" | "MultiPolygon")
}

fn geojson_point(fields: DocRef<'_>) -> Result<Place> {
    check_crs(fields, false)?;
    let plane = flat_point(fields.get("coordinates"), true)?;
    let sphere = sphere_point(plane)?;
    Ok(Place { plane, is_spherical: true, sphere: Some(sphere) })
}

fn collection(fields: DocRef<'_>) -> Result<Shapes> {
    let geometries = fields.get("geometries");
    let Some(Value::Array(geometries)) = geometries else {
        let expected = "GeometryCollection geometries must be an array";
        return Err(Error::bad_value(format!("{expected}, instead got type {}", type_name(geometries))));
    };
    if geometries.is_empty() {
        return Err(Error::bad_value("GeometryCollection geometries must have at least 1 element"));
    }
    let mut shapes = Shapes { is_collection: true, ..Shapes::default() };
    for (place, value) in geometries.values().enumerate() {
        let Value::Document(nested) = value else {
            let expected = format!("Element {place} of \"geometries\" must be an object");
            return Err(Error::bad_value(format!("{expected}, instead got type {}: {value}", value.value_type())));
        };
        match geojson_type(nested).as_deref() {
            Some("GeometryCollection") => {
                return Err(Error::bad_value(format!("GeometryCollections cannot be nested: {value}")));
            }
            Some(kind) if is_shape(kind) => add_shape(kind, nested, &mut shapes)?,
            _ => return Err(Error::bad_value(format!("Unknown GeoJSON type: {value}"))),
        }
    }
    Ok(shapes)
}

/// Reads a shape of a known kind.
fn add_shape(kind: &str, fields: DocRef<'_>, shapes: &mut Shapes) -> Result<()> {
    let coordinates = fields.get("coordinates");
    let is_strict = check_crs(fields, kind == "Polygon")?;
    match kind {
        "Point" => shapes.points.extend(geojson_point(fields)?.sphere),
        "LineString" => shapes.lines.push(line(coordinates)?),
        "Polygon" if is_strict => shapes.big_polygons.push(big_polygon(coordinates)?),
        "Polygon" => shapes.polygons.push(polygon(coordinates)?),
        "MultiPoint" => {
            let points = vertices(coordinates)?;
            if points.is_empty() {
                return Err(Error::bad_value("MultiPoint coordinates must have at least 1 element"));
            }
            shapes.points.extend(points.into_iter().map(SpherePoint::of_point));
        }
        "MultiLineString" => shapes.lines.extend(many(kind, coordinates, line)?),
        _ => shapes.polygons.extend(many(kind, coordinates, polygon)?),
    }
    Ok(())
}

fn many<T>(kind: &str, value: Option<Value<'_>>, one: impl Fn(Option<Value<'_>>) -> Result<T>) -> Result<Vec<T>> {
    let Some(Value::Array(array)) = value else {
        let reason = format!("{kind} coordinates must be an array, instead got type {}", type_name(value));
        return Err(Error::bad_value(reason));
    };
    if array.is_empty() {
        return Err(Error::bad_value(format!("{kind} coordinates must have at least 1 element")));
    }
    array.values().map(|value| one(Some(value))).collect()
}

/// The vertices of a list of coordinates, without those that repeat the one before.
fn vertices(value: Option<Value<'_>>) -> Result<Vec<Vertex>> {
    let Some(Value::Array(array)) = value else {
        let expected = "GeoJSON coordinates must be an array of coordinates";
        return Err(Error::bad_value(format!("{expected}, instead got type {}", type_name(value))));
    };
    let vertex = |value: Value<'_>| {
        if !matches!(value, Value::Array(_)) {
            let expected = "GeoJSON coordinates must be an array";
            return Err(Error::bad_value(format!("{expected}, instead got type {}", value.value_type())));
        }
        sphere_point(flat_point(Some(value), true)?).map(|point| point.point)
    };
    array.values().map(vertex).collect()
}

fn shown(value: Option<Value<'_>>) -> String {
    value.map_or_else(|| "EOO".to_owned(), |value| value.to_string())
}

fn line(value: Option<Value<'_>>) -> Result<Line> {
    let mut points = vertices(value)?;
    points.dedup();
    if points.len() < 2 {
        let reason = format!(
            "GeoJSON LineString must have at least 2 vertices, instead got {} vertices: {}",
            points.len(),
            shown(value)
        );
        return Err(Error::bad_value(reason));
    }
    Line::new(points)
        .map_err(|fault| Error::bad_value(format!("GeoJSON LineString is not valid: {fault} {}", shown(value))))
}

/// A closed ring that is valid by itself.
fn ring(value: Value<'_>, whole: Value<'_>) -> Result<Ring> {
    let mut points = vertices(Some(value))?;
    if points.is_empty() {
        return Err(Error::bad_value(format!("Loop has no vertices: {value}")));
    }
    if points.first() != points.last() {
        let reason = format!("Loop is not closed, first vertex does not equal last vertex: {value}");
        return Err(Error::bad_value(reason));
    }
    points.dedup();
    points.pop();
    if points.len() < 3 {
        let reason = format!(
            "Loop must have at least 3 different vertices, {} unique vertices were provided: {whole}",
            points.len()
        );
        return Err(Error::bad_value(reason));
    }
    let ring = Ring::new(points);
    match ring.fault() {
        Some(fault) => Err(Error::bad_value(format!("Loop is not valid: {whole} {fault}"))),
        None => Ok(ring),
    }
}

fn polygon(value: Option<Value<'_>>) -> Result<Polygon> {
    let Some(whole @ Value::Array(array)) = value else {
        let reason = format!("Polygon coordinates must be an array, instead got type {}", type_name(value));
        return Err(Error::bad_value(reason));
    };
    let mut shell: Option<(Ring, Value<'_>)> = None;
    let mut holes = Vec::new();
    for value in array.values() {
        let next = ring(value, value)?.normalized();
        match &shell {
            None => shell = Some((next, value)),
            Some((outer, source)) if !outer.contains_ring(&next) => {
                let reason = "Secondary loops not contained by first exterior loop - secondary loops must be holes";
                return Err(Error::bad_value(format!("{reason}: {value} first loop: {source}")));
            }
            Some(_) => holes.push(next),
        }
    }
    let Some((shell, _)) = shell else { return Err(Error::bad_value("Polygon has no loops.")) };
    let polygon = Polygon::new(shell, holes);
    match polygon.fault() {
        Some(fault) => Err(Error::bad_value(format!("{fault}: {whole}"))),
        None => Ok(polygon),
    }
}

fn big_polygon(value: Option<Value<'_>>) -> Result<BigPolygon> {
    let Some(whole @ Value::Array(array)) = value else {
        let expected = "Coordinates of polygon must be an array";
        return Err(Error::bad_value(format!("{expected}, instead got type {}", type_name(value))));
    };
    let mut rings = array.values();
    match (rings.next(), rings.next()) {
        (Some(only), None) => ring(only, whole).map(BigPolygon::new),
        _ => {
            let reason = format!(
                "Only one simple loop is allowed in a big polygon, instead provided {} loops: {whole}",
                array.len()
            );
            Err(Error::bad_value(reason))
        }
    }
}

/// True if the coordinates go by strict winding order.
fn check_crs(fields: DocRef<'_>, allows_strict: bool) -> Result<bool> {
    let Some(crs) = fields.get("crs") else { return Ok(false) };
    let Some(crs) = crs.as_nested() else {
        let reason = format!("GeoJSON CRS must be an object, instead got type {}", crs.value_type());
        return Err(Error::bad_value(reason));
    };
    if !matches!(crs.get("type"), Some(Value::String(kind)) if kind == "name") {
        return Err(Error::bad_value("GeoJSON CRS must have field \"type\": \"name\""));
    }
    let properties = crs.get("properties");
    let Some(properties) = properties.and_then(|properties| properties.as_nested()) else {
        let expected = "CRS must have field \"properties\" which is an object";
        return Err(Error::bad_value(format!("{expected}, instead got type {}", type_name(properties))));
    };
    let name = properties.get("name");
    let Some(Value::String(name)) = name else {
        let expected = "In CRS, \"properties.name\" must be a string";
        return Err(Error::bad_value(format!("{expected}, instead got type {}", type_name(name))));
    };
    if CRS_NAMES.iter().any(|known| name == *known) {
        return Ok(false);
    }
    match (name == CRS_STRICT, allows_strict) {
        (true, true) => Ok(true),
        (true, false) => Err(Error::bad_value("Strict winding order CRS is only supported by polygon")),
        _ => Err(Error::bad_value(format!("Unknown CRS name: {name}"))),
    }
}
