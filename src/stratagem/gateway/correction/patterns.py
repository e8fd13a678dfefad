"""Every pattern of correction, and how far each is to be believed.

A pattern is *certain* when it is the only reasonable reading and loses nothing; only then may it
be applied. The confidence of the others is how often they turned out right when calls were
damaged on purpose (`python -m evals repair` prints the figures). They are the tuned numbers of
this package, and all of them are here.
"""

from __future__ import annotations

from typing import Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.correction.model import Risk, Strategy

__all__ = ["PATTERNS", "Pattern"]

_CERTAIN: Final = 0.99


class Pattern(NamedTuple):
    """What a pattern is called, which strategy it belongs to, and what it is worth."""

    name: str
    strategy: Strategy
    confidence: float
    risk: Risk
    certain: bool
    reasoning: str


def _certain(strategy: Strategy, risk: Risk = Risk.LOW, /, **reasonings: str) -> dict[str, Pattern]:
    return {
        name: Pattern(name, strategy, _CERTAIN, risk, certain=True, reasoning=reasoning)
        for name, reasoning in reasonings.items()
    }


def _offered_patterns(
    strategy: Strategy, risk: Risk, /, **rows: tuple[float, str]
) -> dict[str, Pattern]:
    return {
        name: Pattern(name, strategy, confidence, risk, certain=False, reasoning=reasoning)
        for name, (confidence, reasoning) in rows.items()
    }


_TYPES: Final = {
    **_certain(
        Strategy.TYPE_CONVERSION,
        string_to_number_conversion="The text is exactly one number.",
        number_to_string_conversion="Text was expected; the number keeps all its digits.",
        string_to_boolean_conversion="The text is a common way to write true or false.",
        number_to_boolean_conversion="1 and 0 stand for true and false.",
        string_to_null_conversion="The text is the name of null.",
        value_named="Only one parameter of the object takes the value, and no other is needed.",
        value_object_unwrapped="The object only names the value that was expected.",
        quotes_removed="Without the quotes around it the value is allowed.",
    ),
    **_offered_patterns(
        Strategy.TYPE_CONVERSION,
        Risk.MEDIUM,
        grouped_digits_conversion=(0.95, "The comma is read as grouping digits."),
        padded_digits_conversion=(0.6, "Leading zeros would be lost."),
        number_word_conversion=(0.95, "The number is written as a word."),
        boolean_word_conversion=(0.95, "The word suggests true or false."),
        boolean_to_string_conversion=(0.5, "Several texts may stand for a boolean."),
        whole_number_to_string_conversion=(0.6, "The text may need the decimal point or not."),
        short_code_to_string_conversion=(0.5, "A leading zero may have been lost before."),
        value_name_assumed=(0.9, "The value may be the one parameter that the object needs."),
        cents_dropped_conversion=(0.5, "An amount with cents: whole units or cents may be meant."),
        boolean_to_number_conversion=(0.3, "A boolean may stand for 1 or 0."),
    ),
    **_offered_patterns(
        Strategy.TYPE_CONVERSION,
        Risk.HIGH,
        unit_dropped_conversion=(0.95, "The unit beside the number would be dropped."),
        rounded_conversion=(0.05, "The fraction would be lost."),
        precision_lost_conversion=(0.7, "The number has more digits than can be kept."),
    ),
}

_MISSING: Final = {
    **_certain(
        Strategy.MISSING_PARAMETERS,
        Risk.LOW,
        default_for_missing="The schema names a default for it.",
        constant_for_missing="The schema allows only this value.",
    ),
    **_offered_patterns(
        Strategy.MISSING_PARAMETERS,
        Risk.MEDIUM,
        default_beside_unknown=(0.5, "The schema names a default, but a property is unexplained."),
        consent_for_missing=(0.5, "Only the caller can give consent."),
    ),
}

_UNKNOWN: Final = {
    **_certain(
        Strategy.UNKNOWN_PROPERTIES,
        Risk.LOW,
        key_style_variant="The name differs only in case or separators.",
        key_declared_alias="The tool takes this name for the parameter.",
        key_declared_plural="It is a list, and the tool has a parameter for several.",
        duplicate_key_removed="The same value is there under the right name.",
        null_removed="Null stands for an argument that was not given.",
        empty_unknown_removed="The tool has no such parameter, and it carries no value.",
        call_metadata_removed="It describes the call; the tool has no such parameter.",
    ),
    **_certain(
        Strategy.UNKNOWN_PROPERTIES,
        Risk.MEDIUM,
        key_misspelling="The name is a misspelling of exactly one parameter.",
        key_abbreviation="The name is exactly one parameter, abbreviated or spelled out.",
        key_plural="The name is the singular or plural of exactly one parameter.",
        key_known_alias="Earlier calls of this tool meant this parameter by the name.",
        key_moved_inside="Exactly one inner object has a parameter of this name.",
        key_moved_outside="The outer object has a parameter of this name, the inner one does not.",
        key_path_unfolded="The name spells the path to an inner parameter.",
    ),
    **_offered_patterns(
        Strategy.UNKNOWN_PROPERTIES,
        Risk.MEDIUM,
        key_alias_doubtful=(0.6, "Some earlier calls meant this parameter by the name."),
        key_resembles=(0.83, "The name resembles a parameter."),
        key_other_word=(0.3, "The name resembles a parameter, but is another word."),
        key_one_of_several=(0.4, "The name resembles several parameters."),
        key_synonym=(0.94, "The name means about the same as a parameter."),
        key_contained=(0.95, "One of the names contains the other."),
        key_moved_doubtful=(0.8, "An inner object has the name, but it says little."),
        # These two are estimates: damaged calls of real servers are only counted as a whole.
        key_slip_allowed=(0.95, "The schema allows other names, but this looks like a mistake."),
        key_kept=(0.05, "The schema allows other names, and this may be one."),
        key_only_candidate=(0.8, "It is the only unknown name, and one parameter is missing."),
        empty_value_removed=(0.5, "It may be left out, and nothing was given for it."),
    ),
    **_offered_patterns(
        Strategy.UNKNOWN_PROPERTIES,
        Risk.HIGH,
        unknown_property_removed=(0.05, "The tool has no such parameter; its value is lost."),
        key_conflict_resolved=(0.05, "Two names mean one parameter and differ in value."),
    ),
}

_ENUMS: Final = {
    **_certain(
        Strategy.ENUM_VARIANTS,
        Risk.LOW,
        enum_case_variant="The value differs from an allowed one only in case or spacing.",
        enum_punctuation_variant="The value differs from an allowed one only in separators.",
    ),
    **_certain(
        Strategy.ENUM_VARIANTS,
        Risk.MEDIUM,
        enum_misspelling="The value is a misspelling of exactly one allowed value.",
        enum_known_alias="Earlier calls of this tool meant this value by the word.",
    ),
    **_offered_patterns(
        Strategy.ENUM_VARIANTS,
        Risk.MEDIUM,
        enum_prefix=(
            0.95,
            "Exactly one allowed value begins the same, and one of the two is longer.",
        ),
        enum_resembles=(0.93, "The value resembles an allowed one."),
        enum_signed=(0.1, "The sign before the value may mean something."),
        enum_contains=(0.5, "The value contains exactly one allowed value."),
        enum_only_choice=(0.2, "Only one value is allowed."),
    ),
}

_WRAPPERS: Final = {
    **_certain(
        Strategy.WRAPPERS,
        Risk.LOW,
        arguments_unwrapped="The arguments were wrapped in another object.",
        call_object_unwrapped="A whole call was given; its arguments were taken.",
        json_text_parsed="The text is JSON.",
        python_literal_parsed="The text is a Python literal.",
        python_call_parsed="The text is a call with named arguments.",
        no_arguments="Nothing was given, and nothing is needed.",
        json_among_noise="The text around the JSON says nothing about the task.",
    ),
    **_certain(
        Strategy.WRAPPERS,
        Risk.MEDIUM,
        broken_json_repaired="The text is JSON except for its punctuation.",
        markup_parsed="The text is markup with an element for each argument.",
        named_values_parsed="The text gives values to parameters of the tool, and nothing else.",
        named_pairs_joined="The list gives values to parameters of the tool, one by one.",
    ),
    **_offered_patterns(
        Strategy.WRAPPERS,
        Risk.MEDIUM,
        call_of_another_tool=(0.4, "The call names another tool."),
        call_name_doubtful=(0.8, "`name` may belong to the call or to the tool."),
        json_found_in_text=(0.96, "The text around the JSON would be dropped."),
        json_taken_back=(0.05, "The words around the JSON may take it back."),
        json_guessed=(0.6, "Parts of the text were read as text without quotes."),
        pairs_parsed=(0.78, "The text was read as names and values."),
        positional_arguments=(0.93, "Values were given names by their order."),
        sole_argument=(0.93, "The tool has only one parameter that it could be."),
    ),
    **_offered_patterns(
        Strategy.WRAPPERS,
        Risk.HIGH,
        truncated_json_closed=(0.9, "The text ends early; more may have been lost."),
    ),
}

_LISTS: Final = {
    **_certain(
        Strategy.LIST_SHAPES,
        Risk.LOW,
        scalar_wrapped_in_array="A list was expected; it has this one element.",
        single_element_unwrapped="One value was expected; the list has just one.",
        list_object_unwrapped="The object only names the list that was expected.",
        separated_list_split="Each part fits the list, and the whole is a list.",
        one_place_kept_whole="The text names one place, so it is one element.",
    ),
    **_certain(
        Strategy.LIST_SHAPES,
        Risk.MEDIUM,
        list_known_split="Earlier calls of this tool wrote lists in this way.",
        list_known_whole="Earlier calls of this tool wrote one element in this way.",
    ),
    **_offered_patterns(
        Strategy.LIST_SHAPES,
        Risk.MEDIUM,
        doubtful_list_split=(
            0.34,
            "The text may be a list, or one element with a separator in it.",
        ),
        doubtful_list_kept=(0.33, "The text may be one element with a separator in it, or a list."),
        elements_joined=(0.05, "One text was expected; the elements are joined."),
        pairs_to_object=(0.7, "The list is read as names and values."),
        empty_text_for_list=(0.1, "An empty text may stand for an empty list."),
    ),
    **_offered_patterns(
        Strategy.LIST_SHAPES,
        Risk.HIGH,
        first_element_taken=(0.03, "One value was expected; the other elements would be dropped."),
    ),
}

_CONSTRAINTS: Final = {
    **_certain(
        Strategy.CONSTRAINTS,
        Risk.LOW,
        surrounding_space_removed="Without the space around it the value is allowed.",
        code_case_changed="The same code in the case that is allowed.",
    ),
    **_offered_patterns(
        Strategy.CONSTRAINTS,
        Risk.HIGH,
        clamped_to_limit=(0.4, "The nearest allowed number."),
        text_cut_to_limit=(0.05, "The text is cut to the allowed length."),
        list_cut_to_limit=(0.05, "The list is cut to the allowed length."),
        null_element_removed=(0.6, "The list may not hold null."),
    ),
    **_offered_patterns(
        Strategy.CONSTRAINTS,
        Risk.MEDIUM,
        duplicates_removed=(0.8, "Each element may occur only once."),
        case_changed=(0.85, "In another case the value is allowed."),
    ),
}

_FORMATS: Final = {
    **_certain(
        Strategy.FORMATS,
        Risk.LOW,
        date_rewritten="The date can be read in only one way.",
        duration_rewritten="The duration can be read in only one way.",
        time_rewritten="The time can be read in only one way.",
        date_time_rewritten="The moment can be read in only one way.",
        identifier_rewritten="The same identifier in its usual form.",
        address_unwrapped="The same address without what surrounds it.",
    ),
    **_certain(
        Strategy.FORMATS,
        Risk.MEDIUM,
        date_order_known="Earlier calls of this tool wrote day and month in this order.",
    ),
    **_offered_patterns(
        Strategy.FORMATS,
        Risk.MEDIUM,
        date_order_assumed=(0.5, "Day and month can be read in both orders."),
        century_assumed=(0.8, "The year has only two digits."),
        weekday_contradicts=(0.5, "The day of the week is not that of the date."),
        zone_assumed=(0.7, "The moment has no time zone; UTC is assumed."),
        midnight_assumed=(0.6, "The moment has no time; midnight UTC is assumed."),
        epoch_converted=(0.8, "The number is read as seconds or milliseconds since 1970."),
        link_text_dropped=(0.9, "The text of the link would be dropped."),
        scheme_assumed=(0.85, "The address has no scheme; https is assumed."),
    ),
    **_offered_patterns(
        Strategy.FORMATS,
        Risk.HIGH,
        time_of_day_dropped=(0.8, "A date was expected; the time of day would be dropped."),
        display_name_dropped=(0.85, "An address was expected; the name beside it is dropped."),
    ),
}

PATTERNS: Final[dict[str, Pattern]] = {
    **_TYPES,
    **_MISSING,
    **_UNKNOWN,
    **_ENUMS,
    **_WRAPPERS,
    **_LISTS,
    **_CONSTRAINTS,
    **_FORMATS,
}
