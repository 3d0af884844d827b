//! The points: sensors whose values drift.
//!
//! Every sensor is read once a second, all of them in turn: point `n` is of sensor `n % sensors` at second `n / sensors`. A reading has a
//! temperature (two decimals) that goes up or down by at most 0.05, a humidity (one decimal) by at most 0.3, an air pressure (two
//! decimals) by at most 0.05. Each document also has an `_id` of twelve bytes as drivers make it: seconds, a constant, a counter.

use crate::workload::Random;
use pando_doc::{DocBuilder, ObjectId, Value};
use std::fmt::Write;
use std::ops::Range;

/// The first second: 2024-01-01.
pub const START_SECONDS: u64 = 1_704_067_200;
const SALT: u64 = 0x5e45_0000;

/// One reading, its values as whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    number: u64,
    sensor: u64,
    second: u64,
    /// Hundredths of a degree.
    temperature: i64,
    /// Tenths of a per cent.
    humidity: i64,
    /// Hundredths of a hectopascal.
    pressure: i64,
}

/// Gives the points one after the other.
pub struct Points {
    sensors: Vec<(i64, i64, i64)>,
    random: Random,
    next: u64,
}

impl Points {
    /// From the first.
    pub fn new(sensors: u64) -> Points {
        let mut random = Random::stream(SALT, sensors);
        let mut first = |middle: i64, spread: u64| middle + drift(&mut random, spread);
        let sensors = (0..sensors.max(1)).map(|_| (first(1500, 1000), first(500, 200), first(101_300, 1000))).collect();
        Points { sensors, random, next: 0 }
    }

    /// The next so many.
    pub fn take(&mut self, count: u64) -> Vec<Point> {
        (0..count).map(|_| self.point()).collect()
    }

    fn point(&mut self) -> Point {
        let number = self.next;
        self.next += 1;
        let (sensor, second) = (number % self.sensors.len() as u64, number / self.sensors.len() as u64);
        let (temperature, humidity, pressure) = &mut self.sensors[sensor as usize];
        *temperature += drift(&mut self.random, 5);
        *humidity = (*humidity + drift(&mut self.random, 3)).clamp(0, 1000);
        *pressure += drift(&mut self.random, 5);
        let second = START_SECONDS + second;
        Point { number, sensor, second, temperature: *temperature, humidity: *humidity, pressure: *pressure }
    }
}

/// Up or down, at most by this.
fn drift(random: &mut Random, most: u64) -> i64 {
    random.below(2 * most + 1) as i64 - most as i64
}

impl Point {
    /// As a document.
    pub fn write(&self, document: &mut DocBuilder) {
        let id = ObjectId::from_parts(self.second as u32, *b"bench", self.number as u32 & 0x00FF_FFFF);
        document.append("_id", id);
        document.append("time", Value::DateTime(self.second as i64 * 1000));
        document.append("sensor", self.sensor as i32);
        document.append("temperature", self.temperature as f64 / 100.0);
        document.append("humidity", self.humidity as f64 / 10.0);
        document.append("pressure", self.pressure as f64 / 100.0);
    }
}

/// One INSERT of these rows.
pub fn insert_statement(points: &[Point]) -> String {
    let mut text = String::from("INSERT INTO points VALUES ");
    for (place, point) in points.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        // Writing to a string does not fail.
        _ = write!(
            text,
            "{comma}('{}',{},{},{},{})",
            timestamp(point.second),
            point.sensor,
            point.temperature as f64 / 100.0,
            point.humidity as f64 / 10.0,
            point.pressure as f64 / 100.0
        );
    }
    text
}

/// Seconds since 1970 as PostgreSQL reads them.
fn timestamp(seconds: u64) -> String {
    let day = seconds / 86_400 - START_SECONDS / 86_400 + 1;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // The days of one January are enough for 260 million points.
    format!("2024-01-{day:02} {hour:02}:{minute:02}:{second:02}+00")
}

/// The numbers of the points, cut into batches.
pub fn batches(points: u64, batch: u64) -> impl Iterator<Item = Range<u64>> {
    (0..points).step_by(batch.max(1) as usize).map(move |from| from..points.min(from + batch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_in_turn_and_are_the_same_each_time() {
        let (first, second) = (Points::new(3).take(10), Points::new(3).take(10));
        assert_eq!(first, second);
        assert_eq!(first.iter().map(|point| point.sensor).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(first.last().unwrap().second, START_SECONDS + 3);
        assert!(first.windows(4).all(|window| (window[0].temperature - window[3].temperature).abs() <= 5));
    }

    #[test]
    fn times_are_written_as_days_and_hours() {
        assert_eq!(timestamp(START_SECONDS + 2 * 86_400 + 3661), "2024-01-03 01:01:01+00");
        let statement = insert_statement(&Points::new(1).take(2));
        assert_eq!(statement.matches("('2024-01-01 00:00:0").count(), 2);
    }

    #[test]
    fn batches_leave_nothing_out() {
        assert_eq!(batches(2500, 1000).collect::<Vec<_>>(), [0..1000, 1000..2000, 2000..2500]);
    }
}
