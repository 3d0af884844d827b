//! Few cells that cover a shape on the sphere, and where they are in an index.
//!
//! A cell is a number of 64 bits; all cells in it have numbers in a range around its own. Documents are indexed under the cells of their covering, so
//! that a query looks at the ranges of its own covering, and at each single cell that holds one of those.

use super::{BigPolygon, Cap, Line, Polygon, SpherePoint, radians};
use pando_base::{Error, Result};
use pando_doc::DocRef;
use s2::cap::Cap as CapRegion;
use s2::cell::Cell;
use s2::cellid::CellID;
use s2::metric::AVG_EDGEMETRIC;
use s2::region::{Region, RegionCoverer};

/// The level of the smallest cells.
const LEVEL_MAX: u8 = 30;
/// How fine and how coarse the covering of a query is, and how many cells it has.
const QUERY_LEVELS: SphereLevels = SphereLevels { coarsest: 0, finest: 23, cell_count_max: 20 };

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(CellID);

impl CellId {
    /// The smallest cell around a point.
    pub fn of_point(point: &SpherePoint) -> CellId {
        CellId(point.cell)
    }

    pub(crate) fn id(self) -> CellID {
        self.0
    }

    /// The key that it has in an index.
    pub fn key(self) -> i64 {
        self.0.0 as i64
    }

    /// The least and the greatest key of cells in it.
    pub fn key_range(self) -> (i64, i64) {
        (self.0.range_min().0 as i64, self.0.range_max().0 as i64)
    }

    /// The cells that hold this one, up to a level.
    pub fn ancestors(self, coarsest: u8) -> impl Iterator<Item = CellId> {
        let level = self.0.level();
        (u64::from(coarsest)..level).map(move |level| CellId(self.0.parent(level)))
    }

    /// The cells of a level around the corner that is nearest to this one.
    pub fn around_corner(self, level: u8) -> Vec<CellId> {
        self.0.vertex_neighbors(u64::from(level)).into_iter().map(CellId).collect()
    }

    /// What of these cells is not in the others. Cells neither overlap here nor there.
    pub fn missing_of(cells: &[CellId], known: &[CellId]) -> Vec<CellId> {
        let union = |cells: &[CellId]| {
            let mut union = s2::cellunion::CellUnion(cells.iter().map(|cell| cell.0).collect());
            union.normalize();
            union
        };
        s2::cellunion::CellUnion::difference(&union(cells), &union(known)).0.into_iter().map(CellId).collect()
    }
}

/// How documents are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SphereLevels {
    /// The level of the largest cells.
    pub coarsest: u8,
    /// The level of the smallest cells.
    pub finest: u8,
    /// About so many cells.
    pub cell_count_max: usize,
}

impl SphereLevels {
    /// Reads them from the specification of an index of this version.
    pub fn parse(specification: DocRef<'_>, version: i64) -> Result<SphereLevels> {
        let closest = |metres: f64| AVG_EDGEMETRIC.closest_level(radians(metres)) as i64;
        let (finest, coarsest, count) = match version {
            ..=2 => (closest(500.0), closest(100_000.0), 50),
            _ => (closest(110.0), closest(2_000_000.0), 20),
        };
        let number = |name: &str, default: i64| match specification.elements().find(|element| element.name == name) {
            None => Ok(default),
            Some(element) => element.parse_i64(),
        };
        let finest = number("finestIndexedLevel", finest)?;
        let coarsest = number("coarsestIndexedLevel", coarsest)?;
        let count = number("maxCellsInCovering", count)?;
        if coarsest < 0 {
            return Err(Error::location(16747, "coarsestIndexedLevel must be >= 0"));
        }
        if finest > i64::from(LEVEL_MAX) {
            return Err(Error::location(16748, "finestIndexedLevel must be <= 30"));
        }
        if finest < coarsest {
            return Err(Error::location(16749, "finestIndexedLevel must be >= coarsestIndexedLevel"));
        }
        Ok(SphereLevels {
            coarsest: u8::try_from(coarsest).unwrap_or(0),
            finest: u8::try_from(finest).unwrap_or(LEVEL_MAX),
            cell_count_max: usize::try_from(count).unwrap_or(1).max(1),
        })
    }

    fn coverer(&self) -> RegionCoverer {
        RegionCoverer { min_level: self.coarsest, max_level: self.finest, level_mod: 1, max_cells: self.cell_count_max }
    }
}

/// The ranges of keys under which a query with this covering finds what it may touch: those of the cells, and the single cells that hold them.
pub fn keys_of_cell(covering: &[CellId], coarsest: u8) -> Vec<(i64, i64)> {
    let mut singles: Vec<i64> = covering.iter().flat_map(|cell| cell.ancestors(coarsest)).map(CellId::key).collect();
    singles.sort_unstable();
    singles.dedup();
    let ranges = covering.iter().map(|cell| cell.key_range());
    let mut all: Vec<(i64, i64)> = singles.into_iter().map(|key| (key, key)).chain(ranges).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What a covering is made for.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionParts {
    pub(crate) points: Vec<SpherePoint>,
    pub(crate) lines: Vec<Line>,
    pub(crate) polygons: Vec<Polygon>,
    pub(crate) big: Vec<BigPolygon>,
    pub(crate) caps: Vec<Cap>,
}

impl RegionParts {
    /// A cap around everything: around one of the vertices, as far as the others reach. A cap of less than half of the sphere that has the vertices
    /// has the edges, too, and what they enclose.
    fn outline(&self) -> CapRegion {
        let vertices = self.points.iter().map(|point| point.point);
        let vertices = vertices.chain(self.lines.iter().flat_map(|line| line.vertices().iter().copied()));
        let shells = self.polygons.iter().chain(self.big.iter().filter_map(BigPolygon::small));
        let vertices = vertices.chain(shells.flat_map(|polygon| polygon.shell().vertices().iter().copied()));
        let reaches = vertices.map(|vertex| (vertex, 0.0));
        let reaches: Vec<_> = reaches.chain(self.caps.iter().map(|cap| (cap.center.point, cap.radius))).collect();
        let Some((center, _)) = reaches.first() else { return CapRegion::full() };
        let distance = |(vertex, radius): &(s2::point::Point, f64)| center.distance(vertex).rad() + radius;
        let radius = reaches.iter().map(distance).fold(0.0, f64::max) * (1.0 + 1e-9) + 1e-12;
        if radius >= std::f64::consts::FRAC_PI_2 || self.big.iter().any(|big| big.small().is_none()) {
            return CapRegion::full();
        }
        CapRegion::from_center_angle(center, &s2::s1::Rad(radius).into())
    }
}

impl Region for RegionParts {
    fn cap_bound(&self) -> CapRegion {
        self.outline()
    }

    fn contains_cell(&self, cell: &Cell) -> bool {
        self.polygons.iter().any(|polygon| polygon.contains_cell(cell))
            || self.big.iter().any(|big| big.contains_cell(cell))
            || self.caps.iter().any(|cap| cap.region().contains_cell(cell))
    }

    fn intersects_cell(&self, cell: &Cell) -> bool {
        self.points.iter().any(|point| cell.id.contains(&point.cell))
            || self.lines.iter().any(|line| line.meets_cell(cell))
            || self.polygons.iter().any(|polygon| polygon.meets_cell(cell))
            || self.big.iter().any(|big| big.meets_cell(cell))
            || self.caps.iter().any(|cap| cap.region().intersects_cell(cell))
    }
}

/// The cells under which a document with these shapes is indexed, or, without levels, those that a query looks at.
pub(crate) fn cells_of(parts: &RegionParts, levels: Option<SphereLevels>) -> Vec<CellId> {
    let cells = levels.unwrap_or(QUERY_LEVELS).coverer().covering(parts);
    cells.0.into_iter().map(CellId).collect()
}

/// The cells that a query about the shape looks at, or under which it is indexed; none if it is not on the sphere. A point alone is indexed by its smallest cell.
pub fn covering(geometry: &crate::Geometry, levels: Option<SphereLevels>) -> Option<Vec<CellId>> {
    geometry.region_parts().map(|parts| cells_of(&parts, levels))
}

/// What lies between two distances from a point.
struct AnnulusRegion {
    outer: CapRegion,
    /// What is further than the inner border.
    outside_inner: Option<CapRegion>,
}

impl AnnulusRegion {
    fn new(center: &SpherePoint, inner_metres: f64, outer_metres: f64) -> AnnulusRegion {
        // About nine times the rounding of a double: points on the border must not fall out.
        const SLACK: f64 = 1e-15;
        let cap = |metres: f64| CapRegion::from_center_angle(&center.point, &s2::s1::Rad(radians(metres)).into());
        let is_everything = radians(outer_metres * (1.0 + SLACK)) >= std::f64::consts::PI;
        let outer = match is_everything {
            true => CapRegion::full(),
            false => {
                let outer = cap(outer_metres * (1.0 + SLACK));
                if outer.height() < SLACK { CapRegion::from_center_height(&center.point, SLACK) } else { outer }
            }
        };
        let outside_inner = (inner_metres > 0.0).then(|| cap(inner_metres * (1.0 - 1e-12)).complement());
        AnnulusRegion { outer, outside_inner }
    }
}

impl Region for AnnulusRegion {
    fn cap_bound(&self) -> CapRegion {
        self.outer.clone()
    }

    fn contains_cell(&self, cell: &Cell) -> bool {
        self.outer.contains_cell(cell) && self.outside_inner.as_ref().is_none_or(|outside| outside.contains_cell(cell))
    }

    fn intersects_cell(&self, cell: &Cell) -> bool {
        self.outer.intersects_cell(cell)
            && self.outside_inner.as_ref().is_none_or(|outside| outside.intersects_cell(cell))
    }
}

/// The cells that cover what is at least `inner` and at most `outer` metres away.
pub fn annulus_covering(center: &SpherePoint, inner_metres: f64, outer_metres: f64) -> Vec<CellId> {
    let region = AnnulusRegion::new(center, inner_metres, outer_metres);
    QUERY_LEVELS.coverer().covering(&region).0.into_iter().map(CellId).collect()
}

/// True if the cell has a part between these distances.
pub fn is_touched_by_annulus(cell: CellId, center: &SpherePoint, inner_metres: f64, outer_metres: f64) -> bool {
    AnnulusRegion::new(center, inner_metres, outer_metres).intersects_cell(&Cell::from(cell.0))
}
