//! Bodies that more than one bench writes.

use std::fmt::Write;

use fleetcast_core::model::time::{SECOND_NS, write_rfc3339};

pub(crate) const BODY_RECORDS: u32 = 1_000;
pub(crate) const START_NS: i64 = 1_790_000_000 * SECOND_NS;

/// A small generator: the same fleet on every machine.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Uniform from 0 to 1.
    pub(crate) fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f64::from(u32::try_from(self.0 >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    }
}

/// Each entity on its own random walk, a record of each in every body.
pub(crate) struct Fleet {
    dice: Dice,
    first: u32,
    state: Vec<[f64; 5]>,
}

impl Fleet {
    pub(crate) fn new(first: u32) -> Self {
        let mut dice = Dice(u64::from(first) + 42);
        let mut start = || {
            [
                360.0 * dice.roll(),
                5.0 + 80.0 * dice.roll(),
                600.0 + 1_400.0 * dice.roll(),
                4.0 + 16.0 * dice.roll(),
                dice.roll(),
            ]
        };
        let state = (0..BODY_RECORDS).map(|_| start()).collect();
        Self { dice, first, state }
    }

    pub(crate) fn body(&mut self, start_ns: i64) -> Vec<u8> {
        let mut out = String::from("[");
        for (at, state) in (0..).zip(&mut self.state) {
            let mut sway = |by: f64| by * (self.dice.roll() - 0.5);
            state[0] = (state[0] + sway(2.4)).rem_euclid(360.0);
            state[1] = (state[1] + sway(1.2)).clamp(5.0, 90.0);
            state[2] = (state[2] + sway(16.0)).clamp(550.0, 2_600.0);
            state[3] = (state[3] + sway(0.8)).clamp(-3.0, 25.0);
            state[4] = (state[4] + sway(0.04)).clamp(0.0, 1.0);
            let offset_ms = i64::from(at) * 10 + if self.dice.roll() < 0.5 { 0 } else { 7 };
            let mut time = Vec::new();
            write_rfc3339(&mut time, start_ns + offset_ms * 1_000_000);
            let time = String::from_utf8(time).expect("digits");
            let number = self.first + at;
            let comma = if at == 0 { "" } else { "," };
            let [azimuth, elevation, slant, snr, utilization] = state;
            write!(
                out,
                "{comma}{{\"measurement\":\"link\",\"time\":\"{time}\",\"tags\":{{\
                 \"entity_id\":\"{}\",\"entity_type\":\"satellite_link\",\
                 \"ground_station\":\"gs-{:03}.northern\",\"beam\":\"ka-{:04}-downlink\"}},\
                 \"fields\":{{\"azimuth_deg\":{azimuth:.2},\"elevation_deg\":{elevation:.2},\
                 \"slant_range_km\":{slant:.1},\"snr_db\":{snr:.1},\
                 \"utilization\":{utilization:.3}}}}}",
                entity_id(number),
                number % 40,
                number % 256,
            )
            .expect("memory");
        }
        out.push(']');
        out.into_bytes()
    }
}

pub(crate) fn entity_id(number: u32) -> String {
    format!("satellite-link-{number:06}")
}
