//! Gives the classes and functions of `fleetcast._core` the docstrings of their stub,
//! `python/fleetcast/_core.pyi`, so that `help()` shows the text that an editor shows.

mod stub;

use std::collections::HashMap;
use std::sync::LazyLock;

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Docstrings by name. Example of a name: `Plane.scan`.
static DOCSTRINGS: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    stub::docstrings(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../python/fleetcast/_core.pyi"
    )))
});

/// Documents a `struct` and its fields, the functions of an `impl`, or a function. It stands above
/// the attributes of `PyO3`, which take the docs. Example: `#[documented] #[pymethods] impl Plane`.
#[proc_macro_attribute]
pub fn documented(_options: TokenStream, item: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = item.into_iter().collect();
    let after = |keyword| word_after(&tokens, keyword);
    let Some(class) = after("struct").or_else(|| after("impl")) else {
        return after("fn")
            .and_then(|name| attribute(&name))
            .into_iter()
            .flatten()
            .chain(tokens)
            .collect();
    };
    let of_class = after("struct").and_then(|name| attribute(&name)).into_iter().flatten();
    let documented = tokens.into_iter().map(|token| match token {
        TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
            let members = with_docs(&class, body.stream());
            TokenTree::Group(Group::new(Delimiter::Brace, members))
        }
        token => token,
    });
    of_class.chain(documented).collect()
}

/// The docstring of a name, as a literal. Example: `docstring!(Refused)`.
///
/// # Panics
/// Panics if the stub has no docstring of this name.
#[proc_macro]
pub fn docstring(name: TokenStream) -> TokenStream {
    let text = DOCSTRINGS.get(&name.to_string());
    let literal = format!("{:?}", text.expect("the stub has a docstring of this name"));
    literal.parse().expect("a text in quotes is a literal")
}

/// Adds their docstrings to the fields or functions of `class`.
fn with_docs(class: &str, body: TokenStream) -> TokenStream {
    let mut documented = TokenStream::new();
    let mut member: Vec<TokenTree> = Vec::new();
    for token in body {
        let is_end = match &token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(sign) => matches!(sign.as_char(), ',' | ';'),
            _ => false,
        };
        member.push(token);
        if is_end {
            let name = word_after(&member, "fn").or_else(|| field_name(&member));
            documented.extend(name.and_then(|name| attribute(&format!("{class}.{name}"))));
            documented.extend(member.drain(..));
        }
    }
    documented.extend(member);
    documented
}

/// Returns the word before the first `:`.
fn field_name(member: &[TokenTree]) -> Option<String> {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ':');
    let [.., name] = &member[..member.iter().position(is_colon)?] else { return None };
    Some(name.to_string())
}

fn word_after(tokens: &[TokenTree], keyword: &str) -> Option<String> {
    let is_keyword =
        |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == keyword);
    tokens.get(tokens.iter().position(is_keyword)? + 1).map(ToString::to_string)
}

/// Makes the attribute with the docstring of `name`. Returns `None` if the stub has none.
fn attribute(name: &str) -> Option<TokenStream> {
    let text = DOCSTRINGS.get(name)?;
    let attribute = format!("#[doc = {text:?}]");
    Some(attribute.parse().expect("a text in quotes is a literal"))
}
