//! Ids and stamps of forecasts.

use proptest::prelude::*;

use super::*;
use fleetcast_core::model::error::Error;
use fleetcast_core::plane::Plane;

/// The namespace of DNS names (RFC 9562, 6.6).
const NAMESPACE: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

#[test]
fn the_id_of_a_decision_is_a_uuid_of_version_5() {
    let digest = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let id = assignment_id(NAMESPACE, &digest).unwrap();
    assert_eq!(id, "a385ee07-60b1-5061-a80d-eb7f317cb163");
    for other in ["", "6ba7b810", &format!("{NAMESPACE}0"), "é"] {
        assert!(assignment_id(other, &digest).is_err(), "{other}");
    }
}

#[test]
fn a_record_ages_in_its_own_run_of_the_machine_alone() {
    let written = RecordStamp { boot: [1; 16], elapsed_ns: 100 };
    let record = written.stamped(b"content");
    assert_eq!(RecordStamp::content(&record), b"content");
    assert_eq!(RecordStamp { elapsed_ns: 107, ..written }.age_ns(&record), 7);
    assert_eq!(RecordStamp { elapsed_ns: 93, ..written }.age_ns(&record), -7);
    let rebooted = RecordStamp { boot: [2; 16], elapsed_ns: 107 };
    assert_eq!(rebooted.age_ns(&record), RecordStamp::ENDLESS_NS);
    assert_eq!(written.age_ns(&record[..23]), RecordStamp::ENDLESS_NS);
    assert_eq!(RecordStamp::content(&record[..23]), b"");
}

#[test]
fn open_scores_are_opened_as_python_wrote_them() {
    let plane = Plane::in_memory("acme").unwrap();
    let json = br#"{"issued_at_ns":60,"horizon_minutes":5,"model_version":"snr-1","role":"primary","quantiles":{"a":[8.5,9.0,10.0],"b":[1e-3,2.0,3.0]}}"#;
    let record = [&[0, 0, 0, 2][..], &plane.seal(json).unwrap()].concat();
    let scores = OpenScores {
        issued_at_ns: 60,
        horizon_minutes: 5,
        model_version: "snr-1".to_owned(),
        role: "primary".to_owned(),
        quantiles: [("a", [8.5, 9.0, 10.0]), ("b", [1e-3, 2.0, 3.0])]
            .map(|(id, quantiles)| (id.to_owned(), quantiles.to_vec()))
            .into(),
    };
    for record in [record, scores.seal(&plane).unwrap()] {
        assert_eq!(OpenScores::unseal(&plane, &record).unwrap().as_ref(), Some(&scores));
        assert_eq!(OpenScores::count(&record), 2);
        let cut = OpenScores::unseal(&plane, &record[..record.len() - 1]);
        assert!(matches!(cut, Err(Error::Corrupt { .. })), "{cut:?}");
    }
    assert_eq!(OpenScores::count(&[0, 1]), 0);
}

proptest! {
    #[test]
    fn quantiles_are_kept_as_they_are(values in prop::collection::vec(any::<f64>(), 0..4)) {
        let kept = ForecastValue::numbers(&[(5, values.clone())].into());
        let Some(kept) = kept else {
            prop_assert!(values.iter().any(|value| !value.is_finite()));
            return Ok(());
        };
        let read: Vec<f64> = kept[&5].iter().map(|each| each.as_str().parse().unwrap()).collect();
        prop_assert_eq!(read, values);
    }
}
