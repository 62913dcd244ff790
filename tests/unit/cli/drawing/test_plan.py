"""A plan as a drawing."""

import io

from rich.console import Console

from numapin_cli.drawing.plan import draw_plan
from numapin_operator.placement import plan_node
from support.values.placement import NO_UIDS, granted_pod, machine, policy


def test_a_resize_that_waits_is_drawn_with_its_reason() -> None:
    machine_, rules = machine(4, threads=1), policy()
    neighbour = granted_pod("n", ("2", "64Mi"))
    first = plan_node(machine_, rules, None, [granted_pod("a", ("1", "64Mi")), neighbour], NO_UIDS)
    pods = [granted_pod("a", ("2", "64Mi")), neighbour]
    spec = plan_node(machine_, rules, first.spec, pods, NO_UIDS).spec
    written = io.StringIO()
    Console(width=120, file=written).print(draw_plan(machine_, spec, pods))
    drawn = written.getvalue()
    assert "Waiting to be resized (they keep what they have)" in drawn
    assert "default/a c0" in drawn
    assert "NotEnoughCPUs" in drawn
