"""Values and their changes as pages of the console show them."""

from stratagem.surfaces.console.value_views import FieldChange, field_changes, record_changes


def test_the_fields_that_differ_are_named_by_their_place() -> None:
    before = {"a b": {"list": [1, 2]}, "same": 1, "gone": "x"}
    after = {"a b": {"list": [1, 3]}, "same": 1, "new": None}

    assert field_changes(before, after) == [
        FieldChange("a b.list[1]", "2", "3"),
        FieldChange("gone", "x", None),
        FieldChange("new", None, "null"),
    ]


def test_tags_and_expiry_are_shown_where_only_they_differ() -> None:
    changes = record_changes(
        {
            "before": 1,
            "after": 1,
            "differs": ["tags", "expires"],
            "tags_before": [],
            "tags_after": ["a", "b"],
            "expires_after": "2026-05-28T21:26:40.000000Z",
        }
    )

    assert changes == [
        FieldChange("tags", "none", "a, b"),
        FieldChange("expires", "never", "2026-05-28T21:26:40.000000Z"),
    ]


def test_what_both_changed_says_who_changed_each_field() -> None:
    changes = record_changes(
        {
            "before": {"a b": [1, 2], "x": {"y": 1}},
            "after": {"a b": [1, 3], "x": {"y": 2}},
            "changed_by": {"$['a b']": "ours", "$.x": "both", "tags": "theirs"},
            "tags_before": ["old"],
            "tags_after": ["new"],
        }
    )

    assert [(each.path, each.side) for each in changes] == [
        ("a b[1]", "ours"),
        ("x.y", "both"),
        ("tags", "theirs"),
    ]
