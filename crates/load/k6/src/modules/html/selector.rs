//! Selectors: those of CSS, and the pseudo-classes that k6 and jQuery have besides.

use cssparser::{CowRcStr, ParseError, Parser as CssParser, ToCss};
use plimsoll_javascript::busy::spend;
use regex::Regex;
use scraper::{CaseSensitivity, ElementRef, Node};
use selectors::attr::{AttrSelectorOperation, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::context::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode, SelectorCaches,
};
use selectors::matching::{ElementSelectorFlags, matches_selector_list};
use selectors::parser::{NonTSPseudoClass, ParseRelative, Parser, SelectorImpl, SelectorList, SelectorParseErrorKind};
use selectors::{Element, OpaqueElement};
use std::fmt;

/// The most levels of brackets in a selector, whose parser calls itself for each.
const DEEPEST_SELECTOR: usize = 16;

/// The steps of [`spend`] that a match takes, which looks at what is around the element.
const STEPS_OF_A_MATCH: usize = 64;

/// A list of selectors, separated by commas.
#[derive(Clone, Debug)]
pub(crate) struct Selector(SelectorList<Syntax>);

impl Selector {
    /// Reads a list of selectors.
    ///
    /// # Errors
    /// The text is no such list, or has a pseudo-class that is not known here.
    pub(crate) fn parse(text: &str) -> Result<Selector, String> {
        check_nesting(text)?;
        let parsed = SelectorList::parse(&Syntax, &mut CssParser::new(text), ParseRelative::No);
        parsed
            .map(Selector)
            .map_err(|_| format!("expected a selector of CSS, found `{text}`, which is not supported here"))
    }

    /// True if one of the selectors matches the element.
    pub(super) fn matches(&self, element: ElementRef<'_>) -> bool {
        spend(STEPS_OF_A_MATCH);
        let mut caches = SelectorCaches::default();
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            &mut caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        matches_selector_list(&self.0, &Candidate(element), &mut context)
    }
}

/// Refuses a selector whose brackets nest too deep, or with a `:has` inside of another one, which CSS does not allow: each
/// level would look at all elements below all elements of the one before.
fn check_nesting(text: &str) -> Result<(), String> {
    let (mut depth, mut has) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => {
                depth += 1;
                if text[..at].ends_with(":has") && has.replace(depth).is_some() {
                    return Err(format!("expected a selector without `:has` inside of `:has`, found `{text}`"));
                }
            }
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                has = has.filter(|at| *at <= depth);
            }
            _ => {}
        }
        if depth > DEEPEST_SELECTOR {
            return Err(format!("expected a selector with at most {DEEPEST_SELECTOR} levels of brackets, found more"));
        }
    }
    Ok(())
}

/// The syntax of selectors in CSS by `scraper`.
type Css = scraper::selector::Simple;

/// That syntax with more pseudo-classes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Syntax;

impl SelectorImpl for Syntax {
    type ExtraMatchingData<'a> = ();
    type AttrValue = <Css as SelectorImpl>::AttrValue;
    type Identifier = <Css as SelectorImpl>::Identifier;
    type LocalName = <Css as SelectorImpl>::LocalName;
    type NamespaceUrl = <Css as SelectorImpl>::NamespaceUrl;
    type NamespacePrefix = <Css as SelectorImpl>::NamespacePrefix;
    type BorrowedNamespaceUrl = <Css as SelectorImpl>::BorrowedNamespaceUrl;
    type BorrowedLocalName = <Css as SelectorImpl>::BorrowedLocalName;
    type NonTSPseudoClass = PseudoClass;
    type PseudoElement = <Css as SelectorImpl>::PseudoElement;
}

/// A pseudo-class that looks at more than the place of an element in the tree.
#[derive(Clone, Debug)]
enum PseudoClass {
    /// A box that is ticked, or a choice that is made.
    Checked,
    Disabled,
    Enabled,
    /// A field of a form, or a button.
    Input,
    Link,
    /// `:hover` and others: true for nothing, because nobody looks at the page.
    Never,
    Lang(String),
    /// The text, or with `own` the text outside of elements within, has these letters in either case.
    Contains {
        text: String,
        own: bool,
    },
    /// The text, or with `own` the text outside of elements within, has a match of the expression.
    Matches {
        expression: Regex,
        own: bool,
    },
    /// A child matches.
    HasChild(SelectorList<Syntax>),
}

impl PartialEq for PseudoClass {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (PseudoClass::Lang(one), PseudoClass::Lang(two)) => one == two,
            (PseudoClass::Contains { text, own }, PseudoClass::Contains { text: other, own: others }) => {
                (text, own) == (other, others)
            }
            (PseudoClass::Matches { expression, own }, PseudoClass::Matches { expression: other, own: others }) => {
                (expression.as_str(), own) == (other.as_str(), others)
            }
            (PseudoClass::HasChild(one), PseudoClass::HasChild(two)) => one == two,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for PseudoClass {}

impl ToCss for PseudoClass {
    /// For messages of the parser, which nobody sees.
    fn to_css<W: fmt::Write>(&self, dest: &mut W) -> fmt::Result {
        write!(dest, "{self:?}")
    }
}

impl NonTSPseudoClass for PseudoClass {
    fn is_active_or_hover(&self) -> bool {
        false
    }

    fn is_user_action_state(&self) -> bool {
        false
    }
}

type Parsed<T> = Result<T, ParseError<SelectorParseErrorKind>>;

fn unknown<T>() -> Parsed<T> {
    Err(ParseError::custom(SelectorParseErrorKind::UnsupportedPseudoClassOrElement))
}

impl<'i> Parser<'i> for Syntax {
    type Impl = Syntax;
    type Error = SelectorParseErrorKind;

    fn parse_is_and_where(&self) -> bool {
        true
    }

    fn parse_has(&self) -> bool {
        true
    }

    /// A selector that cannot be read is a fault wherever it stands.
    fn allow_forgiving_selectors(&self) -> bool {
        false
    }

    fn parse_non_ts_pseudo_class(&self, name: CowRcStr<'i>) -> Parsed<PseudoClass> {
        match &*name.to_ascii_lowercase() {
            "checked" => Ok(PseudoClass::Checked),
            "disabled" => Ok(PseudoClass::Disabled),
            "enabled" => Ok(PseudoClass::Enabled),
            "input" => Ok(PseudoClass::Input),
            "link" => Ok(PseudoClass::Link),
            "active" | "focus" | "hover" | "target" | "visited" => Ok(PseudoClass::Never),
            _ => unknown(),
        }
    }

    fn parse_non_ts_functional_pseudo_class(
        &self,
        name: CowRcStr<'i>,
        parser: &mut CssParser<'i>,
        _after_part: bool,
    ) -> Parsed<PseudoClass> {
        let name = name.to_ascii_lowercase();
        let own = name.ends_with("own");
        match &*name {
            "lang" => Ok(PseudoClass::Lang(parser.expect_ident()?.to_lowercase())),
            "contains" | "containsown" => {
                Ok(PseudoClass::Contains { text: parser.expect_ident_or_string()?.to_lowercase(), own })
            }
            "matches" | "matchesown" => match Regex::new(rest_of(parser).trim()) {
                Ok(expression) => Ok(PseudoClass::Matches { expression, own }),
                Err(_) => unknown(),
            },
            "haschild" => SelectorList::parse(self, parser, ParseRelative::No).map(PseudoClass::HasChild),
            _ => unknown(),
        }
    }
}

/// What stands between here and the end of the brackets, as it is.
fn rest_of<'i>(parser: &mut CssParser<'i>) -> &'i str {
    let start = parser.position();
    while parser.next_including_whitespace_and_comments().is_ok() {}
    parser.slice_from(start)
}

/// An element that may match. What `scraper` knows of CSS is its own.
#[derive(Clone, Debug)]
struct Candidate<'a>(ElementRef<'a>);

impl<'a> Candidate<'a> {
    fn name(&self) -> &'a str {
        self.0.value().name()
    }

    fn has(&self, attribute: &str) -> bool {
        self.0.value().attr(attribute).is_some()
    }

    fn parents(&self) -> impl Iterator<Item = Candidate<'a>> {
        self.0.ancestors().filter_map(ElementRef::wrap).map(Candidate)
    }

    fn is_checked(&self) -> bool {
        match self.name() {
            "input" | "menuitem" => {
                let kind = self.0.value().attr("type").unwrap_or_default().to_ascii_lowercase();
                self.has("checked") && ["checkbox", "radio"].contains(&&*kind)
            }
            "option" => self.has("selected"),
            _ => false,
        }
    }

    /// True if it is disabled; none for elements that cannot be.
    fn disabled(&self) -> Option<bool> {
        match self.name() {
            "optgroup" | "menuitem" | "fieldset" => Some(self.has("disabled")),
            "button" | "input" | "select" | "textarea" | "option" => Some(
                self.has("disabled") || self.parents().any(|above| above.name() == "fieldset" && above.has("disabled")),
            ),
            _ => None,
        }
    }

    fn is_reference(&self) -> bool {
        ["a", "area", "link"].contains(&self.name()) && self.has("href")
    }

    fn is_in_language(&self, language: &str) -> bool {
        let is = |element: Candidate<'_>| {
            let own = element.0.value().attr("lang");
            own.and_then(|own| own.strip_prefix(language)).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        is(self.clone()) || self.parents().any(is)
    }

    /// All text in it, or only that outside of elements in it.
    fn text(&self, own: bool) -> String {
        if own {
            let texts = self.0.children().filter_map(|child| child.value().as_text());
            return texts.map(|text| &*text.text as &str).collect();
        }
        self.0.text().collect()
    }
}

impl Element for Candidate<'_> {
    type Impl = Syntax;

    fn match_non_ts_pseudo_class(&self, class: &PseudoClass, context: &mut MatchingContext<'_, Syntax>) -> bool {
        match class {
            PseudoClass::Checked => self.is_checked(),
            PseudoClass::Disabled => self.disabled() == Some(true),
            PseudoClass::Enabled => self.disabled() == Some(false) || self.is_reference(),
            PseudoClass::Input => ["input", "select", "textarea", "button"].contains(&self.name()),
            PseudoClass::Link => self.is_reference(),
            PseudoClass::Never => false,
            PseudoClass::Lang(language) => self.is_in_language(language),
            PseudoClass::Contains { text, own } => self.text(*own).to_lowercase().contains(text),
            PseudoClass::Matches { expression, own } => expression.is_match(&self.text(*own)),
            PseudoClass::HasChild(list) => {
                let mut children = self.0.child_elements().map(Candidate);
                children.any(|child| matches_selector_list(list, &child, context))
            }
        }
    }

    /// As in k6, and unlike CSS, blank text leaves an element empty.
    fn is_empty(&self) -> bool {
        self.0.children().all(|child| match child.value() {
            Node::Element(_) => false,
            Node::Text(text) => text.text.trim().is_empty(),
            _ => true,
        })
    }

    fn opaque(&self) -> OpaqueElement {
        self.0.opaque()
    }

    fn parent_element(&self) -> Option<Self> {
        self.0.parent_element().map(Candidate)
    }

    fn parent_node_is_shadow_root(&self) -> bool {
        false
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        None
    }

    fn is_pseudo_element(&self) -> bool {
        false
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.0.prev_sibling_element().map(Candidate)
    }

    fn next_sibling_element(&self) -> Option<Self> {
        self.0.next_sibling_element().map(Candidate)
    }

    fn first_element_child(&self) -> Option<Self> {
        self.0.first_element_child().map(Candidate)
    }

    fn is_html_element_in_html_document(&self) -> bool {
        self.0.is_html_element_in_html_document()
    }

    fn has_local_name(&self, name: &<Css as SelectorImpl>::BorrowedLocalName) -> bool {
        self.0.has_local_name(name)
    }

    fn has_namespace(&self, namespace: &<Css as SelectorImpl>::BorrowedNamespaceUrl) -> bool {
        self.0.has_namespace(namespace)
    }

    fn is_same_type(&self, other: &Self) -> bool {
        self.0.is_same_type(&other.0)
    }

    fn attr_matches(
        &self,
        namespace: &NamespaceConstraint<&<Css as SelectorImpl>::NamespaceUrl>,
        name: &<Css as SelectorImpl>::LocalName,
        operation: &AttrSelectorOperation<&<Css as SelectorImpl>::AttrValue>,
    ) -> bool {
        self.0.attr_matches(namespace, name, operation)
    }

    fn match_pseudo_element(
        &self,
        _element: &<Css as SelectorImpl>::PseudoElement,
        _context: &mut MatchingContext<'_, Syntax>,
    ) -> bool {
        false
    }

    fn apply_selector_flags(&self, _flags: ElementSelectorFlags) {}

    fn is_link(&self) -> bool {
        self.is_reference()
    }

    fn is_html_slot_element(&self) -> bool {
        false
    }

    fn has_id(&self, id: &<Css as SelectorImpl>::Identifier, case: CaseSensitivity) -> bool {
        self.0.has_id(id, case)
    }

    fn has_class(&self, name: &<Css as SelectorImpl>::Identifier, case: CaseSensitivity) -> bool {
        self.0.has_class(name, case)
    }

    fn has_custom_state(&self, _name: &<Css as SelectorImpl>::Identifier) -> bool {
        false
    }

    fn imported_part(&self, _name: &<Css as SelectorImpl>::Identifier) -> Option<<Css as SelectorImpl>::Identifier> {
        None
    }

    fn is_part(&self, _name: &<Css as SelectorImpl>::Identifier) -> bool {
        false
    }

    fn is_root(&self) -> bool {
        self.0.is_root()
    }

    fn add_element_unique_hashes(&self, _filter: &mut BloomFilter) -> bool {
        false
    }
}
