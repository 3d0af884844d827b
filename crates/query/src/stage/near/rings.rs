//! Where a search by distance looks next: ring after ring around its point, each covered by cells that were not looked at before.
//!
//! How wide the first ring is comes from a probe: cells around the point, larger and larger, until one has a key in it. After that, rings grow as
//! long as they give little and shrink when they give much.

use crate::planner::{
    IntervalList, NearPlan, PLANE_CELLS_MAX, PlaceField, degrees_along_latitude, inside_sphere_cells, of_plane_cells,
    of_sphere_cells,
};
use pando_base::{Error, Result};
use pando_geo::plane::{self, Annulus, CellUnion, Grid, PlanePoint};
use pando_geo::sphere::{self, CellId, SphereLevels, SpherePoint};

/// A ring with fewer results is followed by a wider one.
const FEW_RESULTS: u64 = 300;
/// One with more by a narrower one.
const MANY_RESULTS: u64 = 600;
/// The finest level at which the sphere is probed.
const PROBE_LEVEL_MAX: u32 = 23;

/// The next part of the search.
pub(super) struct Ring {
    pub(super) inner: f64,
    pub(super) outer: f64,
    pub(super) is_last: bool,
    /// The keys in which its documents are.
    pub(super) keys: IntervalList,
}

enum Ground {
    Plane { grid: Grid, scanned: CellUnion },
    Sphere { levels: SphereLevels, point: SpherePoint, scanned: Vec<CellId> },
}

/// All rings of a search.
pub(super) struct Rings {
    ground: Ground,
    center: PlanePoint,
    is_spherical: bool,
    inner: f64,
    outer: f64,
    /// Where the last ring ended; none before the first.
    reached: Option<f64>,
    width: f64,
}

impl Rings {
    pub(super) fn new(plan: &NearPlan) -> Result<Rings> {
        let center = &plan.near.center;
        let (inner, mut outer) = plan.near.measured_range();
        let place = plan.info.fields.get(plan.field).and_then(|field| field.place);
        let ground = match (place, center.sphere) {
            (Some(PlaceField::Plane(grid)), _) => {
                if !grid.contains(center.plane) {
                    let (min, max) = (grid.min(), grid.max());
                    let reason = format!(
                        "point not in interval of [ {min}, {max} ] :: caused by :: {{ 0: {}, 1: {} }}",
                        center.plane.x, center.plane.y
                    );
                    return Err(Error::location(16433, reason));
                }
                if !center.is_spherical {
                    // Nothing in the square is further than this.
                    outer = outer.min(1.5 * (grid.max() - grid.min()));
                }
                Ground::Plane { grid, scanned: CellUnion::default() }
            }
            (Some(PlaceField::Sphere(levels)), Some(point)) => Ground::Sphere { levels, point, scanned: Vec::new() },
            _ => return Err(Error::internal("a search by distance without an index of places")),
        };
        let (center, is_spherical) = (center.plane, center.is_spherical);
        Ok(Rings { ground, center, is_spherical, inner, outer, reached: None, width: 0.0 })
    }

    /// The least and the greatest distance that is wanted.
    pub(super) fn range(&self) -> (f64, f64) {
        (self.inner, self.outer)
    }

    // ---- The probe.

    /// The level that is probed first.
    pub(super) fn first_probe(&self) -> u32 {
        match &self.ground {
            Ground::Plane { grid, .. } => grid.bits().saturating_sub(1),
            Ground::Sphere { .. } => PROBE_LEVEL_MAX,
        }
    }

    /// The keys around the point at a level.
    pub(super) fn probe(&self, level: u32) -> IntervalList {
        match &self.ground {
            Ground::Plane { grid, .. } => of_plane_cells(&grid.cell(self.center).around_corner(level)),
            Ground::Sphere { point, .. } => {
                let level = u8::try_from(level).unwrap_or(0);
                inside_sphere_cells(&CellId::of_point(point).around_corner(level))
            }
        }
    }

    /// How wide cells of a level are, in the units of distances.
    fn edge(&self, level: u32) -> f64 {
        match &self.ground {
            Ground::Plane { grid, .. } if self.is_spherical => sphere::metres(grid.edge(level).to_radians()),
            Ground::Plane { grid, .. } => grid.edge(level),
            // An edge is a quarter of the way around, halved at each level.
            Ground::Sphere { .. } => sphere::metres(std::f64::consts::FRAC_PI_2 / 2_f64.powi(level as i32)),
        }
    }

    /// True if what was probed at the level holds the whole search: there is nothing to find further out.
    pub(super) fn is_whole(&self, level: u32) -> bool {
        level == 0 || self.outer < self.edge(level) / 4.0
    }

    /// The probe ended at this level.
    pub(super) fn probed(&mut self, level: u32) {
        self.width = 3.0 * self.edge(level);
        if let (Ground::Plane { .. }, true) = (&self.ground, self.is_spherical) {
            self.width = self.width.min(sphere::metres(std::f64::consts::PI) / 1000.0);
        }
    }

    // ---- The rings.

    /// The next ring, if there is one; `returned` is what the last one gave.
    pub(super) fn next(&mut self, returned: u64) -> Option<Ring> {
        let inner = match self.reached {
            None => self.inner,
            Some(reached) if reached >= self.outer => return None,
            Some(reached) => {
                if returned < FEW_RESULTS {
                    self.width *= 2.0;
                } else if returned > MANY_RESULTS {
                    self.width /= 2.0;
                }
                reached
            }
        };
        if let Ground::Plane { grid, .. } = &self.ground {
            let least = grid.error() / 2.0;
            self.width = self.width.max(if self.is_spherical { sphere::metres(least.to_radians()) } else { least });
        }
        // A ring that is lost in rounding would never end.
        let outer = (inner + self.width).max(inner * (1.0 + 1e-9)).min(self.outer);
        self.reached = Some(outer);
        let keys = self.keys(inner, outer);
        Some(Ring { inner, outer, is_last: outer >= self.outer, keys })
    }

    fn keys(&mut self, inner: f64, outer: f64) -> IntervalList {
        let annulus = self.plane_annulus(inner, outer);
        match &mut self.ground {
            Ground::Plane { grid, scanned } => {
                let cells = plane::covering(&annulus, grid, PLANE_CELLS_MAX);
                let fresh = scanned.missing_of(&cells);
                scanned.add(&fresh);
                of_plane_cells(&fresh)
            }
            Ground::Sphere { levels, point, scanned } => {
                let cells = sphere::annulus_covering(point, inner, outer);
                let mut fresh = CellId::missing_of(&cells, scanned);
                fresh.retain(|cell| sphere::is_touched_by_annulus(*cell, point, inner, outer));
                scanned.extend_from_slice(&fresh);
                of_sphere_cells(&fresh, levels)
            }
        }
    }

    /// The ring on the plane, a little wider than it is: cells must hold what rounding puts on its border.
    fn plane_annulus(&self, inner: f64, outer: f64) -> Annulus {
        if self.is_spherical {
            let (inner, outer) = (sphere::radians(inner).to_degrees(), sphere::radians(outer).to_degrees());
            let stretch = degrees_along_latitude(self.center.y, outer);
            return Annulus { center: self.center, inner: (inner - stretch).max(0.0), outer: outer + stretch };
        }
        let slack = f64::EPSILON * (self.center.x.abs().max(self.center.y.abs()) + self.outer) * 4.0;
        Annulus { center: self.center, inner: (inner - slack).max(0.0), outer: outer + slack }
    }
}
