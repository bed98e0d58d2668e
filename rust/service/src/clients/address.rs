//! The address of a client, also behind trusted proxies.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// Addresses and networks, as settings list them.
#[derive(Clone, Debug, Default)]
pub struct Networks(Vec<(IpAddr, u8)>);

/// An address, and the zone of an IPv6 address if the text has a zone.
#[derive(Clone, Copy)]
struct ScopedAddress<'t> {
    ip: IpAddr,
    zone: Option<&'t str>,
}

impl Networks {
    /// Reads networks such as `10.0.0.0/8`. A malformed text matches no address.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self(texts.into_iter().filter_map(|text| network(text.as_ref())).collect())
    }

    /// Returns true if one of the networks contains the client's address, as [`ClientAddresses`]
    /// finds it.
    #[must_use]
    pub fn has(&self, client: &str) -> bool {
        !self.0.is_empty()
            && ScopedAddress::read(client).is_some_and(|address| self.holds(address.ip))
    }

    fn holds(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|(network, bits)| match (network, ip) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                shifted((network.to_bits() ^ ip.to_bits()).into(), 32 - bits) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => {
                shifted(network.to_bits() ^ ip.to_bits(), 128 - bits) == 0
            }
            _ => false,
        })
    }
}

fn shifted(bits: u128, by: u8) -> u128 {
    bits.checked_shr(by.into()).unwrap_or(0)
}

fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, bits)| (a, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(bits_max), |bits| bits.parse().ok())?;
    (bits <= bits_max).then_some((address, bits))
}

/// Finds the address of a client.
///
/// Clients can forge `X-Forwarded-For`. Each proxy appends the address that connected to it. Only
/// the entries added by trusted proxies, read from the right, can be believed. Example: with proxy
/// 10.0.0.1 trusted, `evil, 1.2.3.4` means 1.2.3.4.
#[derive(Clone, Debug, Default)]
pub struct ClientAddresses {
    proxies: Networks,
}

impl ClientAddresses {
    /// Makes a finder that trusts `proxies`.
    #[must_use]
    pub fn new(proxies: Networks) -> Self {
        Self { proxies }
    }

    /// Returns the peer, or the right-most forwarded address that is not a trusted proxy.
    ///
    /// An entry that is not an address ends the search. The client is then the proxy that forwarded
    /// it.
    #[must_use]
    pub fn of<'p>(&self, peer: &'p str, forwarded: Option<&[u8]>) -> Cow<'p, str> {
        let Some(forwarded) = forwarded.filter(|text| !text.is_empty()) else { return peer.into() };
        let is_proxy = |address: ScopedAddress<'_>| self.proxies.holds(address.ip);
        let mut client = match ScopedAddress::read(peer) {
            Some(address) if is_proxy(address) => address,
            _ => return peer.into(),
        };
        for entry in forwarded.rsplit(|byte| *byte == b',') {
            let entry = entry.trim_ascii();
            if entry.is_empty() {
                continue; // an empty list element has no meaning (RFC 9110, 5.6.1)
            }
            let Some(address) = str::from_utf8(entry).ok().and_then(ScopedAddress::read) else {
                break;
            };
            client = address;
            if !is_proxy(client) {
                break;
            }
        }
        client.to_string().into()
    }
}

impl<'t> ScopedAddress<'t> {
    /// Reads the address in an entry. Some proxies append a port. Example: `1.2.3.4:5678`.
    fn read(text: &'t str) -> Option<Self> {
        let text = match text.strip_prefix('[') {
            Some(text) => text.split(']').next().unwrap_or_default(),
            None if text.matches(':').count() == 1 => text.split(':').next().unwrap_or_default(),
            None => text,
        };
        let (address, zone) =
            text.split_once('%').map_or((text, None), |(a, zone)| (a, Some(zone)));
        let ip: IpAddr = address.parse().ok()?;
        let is_zone = |zone: &str| ip.is_ipv6() && !zone.is_empty() && !zone.contains('%');
        if !zone.is_none_or(is_zone) {
            return None;
        }
        let canonical = ip.to_canonical();
        Some(Self { ip: canonical, zone: zone.filter(|_| canonical.is_ipv6()) })
    }
}

impl fmt::Display for ScopedAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ip)?;
        self.zone.map_or(Ok(()), |zone| write!(f, "%{zone}"))
    }
}
