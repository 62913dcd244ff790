"""Label selectors, as in Kubernetes."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from numapin_api.meta.cel_rules import LABEL_KEY, label_map_rules, rule, rules
from numapin_api.meta.wire import MAP_TYPE, WireModel, atomic_list

LabelValue = Annotated[str, Field(max_length=63)]


class LabelSelectorRequirement(WireModel):
    """One expression of a label selector. Source: Kubernetes `metav1.LabelSelectorRequirement`."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0"
                " : !has(self.values) || size(self.values) == 0",
                "In and NotIn need values, Exists and DoesNotExist take none: add or remove values",
                ".values",
            )
        )
    )
    key: str = Field(description="The label key.", min_length=1, max_length=317, pattern=LABEL_KEY)
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="The relation of the label to the values."
    )
    values: tuple[LabelValue, ...] = Field(
        default=(),
        description="The values to compare with; must be empty for Exists and DoesNotExist.",
        max_length=64,
        json_schema_extra=atomic_list(),
    )


class LabelSelector(WireModel):
    """A query over labels; an empty one matches everything. Source: `metav1.LabelSelector`."""

    model_config = ConfigDict(json_schema_extra={MAP_TYPE: "atomic"})
    match_labels: dict[str, LabelValue] = Field(
        default_factory=dict,
        description="Labels that an object must have, all of them with these values.",
        max_length=64,
        json_schema_extra=label_map_rules(),
    )
    match_expressions: tuple[LabelSelectorRequirement, ...] = Field(
        default=(),
        description="Expressions that an object's labels must satisfy, all of them.",
        max_length=64,
        json_schema_extra=atomic_list(),
    )
