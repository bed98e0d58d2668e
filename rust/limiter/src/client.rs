//! The clients whose requests are counted: IPv4 addresses, and networks of IPv6.

use std::net::{IpAddr, Ipv6Addr};

/// Marks the low half of a key for a /64 network, whose low half is otherwise unused. The mark also
/// keeps the network of `::1` from being all zeros, because a key of zeros is an empty slot in the
/// file.
const NETWORK: u128 = 64;

/// Key of all clients without an IP address: clients on a Unix socket.
const NOWHERE: u128 = 1;

/// A client that is counted: an IPv4 address, or the /64 network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client(u128);

impl Client {
    /// Returns the client of an address in text. An IPv6 zone is ignored, and IPv4 mapped into IPv6
    /// is IPv4. All texts that are not an address share one client. Example: `::ffff:192.0.2.1` and
    /// `192.0.2.1` are the same client.
    #[must_use]
    pub fn of(address: &str) -> Self {
        let text = address.split('%').next().unwrap_or(address);
        match text.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(IpAddr::V4(address)) => Self(address.to_ipv6_mapped().to_bits()),
            Ok(IpAddr::V6(address)) => Self::network(address),
            Err(_) => Self(NOWHERE),
        }
    }

    fn network(address: Ipv6Addr) -> Self {
        Self(address.to_bits() >> 64 << 64 | NETWORK)
    }

    /// Returns the key in the file, which is never 0.
    pub(crate) fn key(self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_client_have_one_key() {
        let same = [
            ("10.1.2.3", "::ffff:10.1.2.3"),
            ("10.1.2.3", "::ffff:0a01:203"),
            ("2001:db8::1", "2001:db8::ffff:1:2:3"),
            ("2001:db8::1", "2001:DB8:0:0:8000::"),
            ("fe80::1", "fe80::2%eth0"),
            ("", "no address"),
        ];
        for (one, other) in same {
            assert_eq!(Client::of(one), Client::of(other), "{one} {other}");
        }
    }

    #[test]
    fn different_clients_have_different_keys() {
        let all = [
            "10.1.2.3",
            "10.1.2.4",
            "0.0.0.0",
            "0.0.0.1",
            "0.0.0.64",
            "::1",
            "2001:db8::1",
            "2001:db8:0:1::1",
            "2001:db9::1",
            "fe80::1",
            "",
        ];
        for (index, one) in all.iter().enumerate() {
            assert_ne!(Client::of(one).key(), 0, "{one}");
            for other in &all[index + 1..] {
                assert_ne!(Client::of(one), Client::of(other), "{one} {other}");
            }
        }
    }
}
