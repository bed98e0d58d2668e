//! A clock that nobody can set and that shows all processes of a host the same time. The
//! clock begins anew at each boot, and a boot has a name.

use std::io;

/// Returns the nanoseconds since the machine started, including the time that the machine slept.
///
/// # Errors
///
/// Returns the answer of the operating system if it has no such clock.
pub fn boottime_ns() -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that outlives the call, and the call writes to `time`
    // only.
    #[expect(unsafe_code, reason = "the standard library reads this clock only as differences")]
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).map_err(io::Error::other)?;
    let nanoseconds = u64::try_from(time.tv_nsec).map_err(io::Error::other)?;
    Ok(seconds * crate::rules::SECOND_NS + nanoseconds)
}

/// Bytes of the name of a boot.
pub(crate) const BOOT_BYTES: usize = 36;

/// Returns the name of this boot. Instants of another boot have no meaning now.
///
/// # Errors
///
/// Returns the answer of the operating system if the name cannot be read.
pub(crate) fn boot() -> io::Result<[u8; BOOT_BYTES]> {
    let text = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    let name = text.first_chunk().copied();
    name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the boot has no name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_rises_and_counts_from_the_boot() {
        let before = boottime_ns().expect("a clock");
        let uptime = std::fs::read_to_string("/proc/uptime").expect("an uptime");
        let after = boottime_ns().expect("a clock");
        let uptime_s: f64 = uptime.split(' ').next().and_then(|s| s.parse().ok()).expect("seconds");
        assert!(0 < before && before <= after);
        let [before_s, after_s] =
            [before, after].map(|ns| std::time::Duration::from_nanos(ns).as_secs_f64());
        let span = before_s - 5.0..after_s + 5.0;
        assert!(span.contains(&uptime_s), "{uptime_s} {span:?}");
        assert_eq!(boot().expect("a name"), boot().expect("a name"));
    }
}
