"""An etcd that was restored from a backup is noticed, and the caches start over."""

from numapin_client.errors import ConnectionFailedError
from numapin_operator.observe.cache import ClusterState
from numapin_operator.observe.policy_source.history import HistoryCheck
from numapin_operator.observe.stores.versioned_cache import Listed
from support.fakes.manual_clock import ManualClock
from support.real.waiting import running
from support.values.operator import assignment_view, node_view, policy_body, policy_view


async def test_only_an_older_server_is_reported() -> None:
    clock, returned = ManualClock(), []
    answers: list[int | Exception] = [
        10,
        12,
        ConnectionFailedError("GET", "refused"),
        9,
    ]

    async def read() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    check = HistoryCheck(lambda: 10, read, lambda: returned.append(1), clock)
    async with running(check.run()):
        for _ in range(3):
            check.request()
            await clock.run_tasks()
        assert returned == []
        await clock.advance(60)
        assert returned == [1]


def test_a_restored_server_replaces_what_was_seen() -> None:
    """Its versions are lower than ours, and so are those of everything that comes later."""
    woken: list[str] = []
    state = ClusterState(lambda name, urgent=False: woken.append(name))
    state.put_node(node_view())
    state.put_policy(policy_body("policy", {"reserved": {"count": 2}}, version=1000))
    state.drop_policy(policy_body("restored", version=1001))
    state.assignments.put(assignment_view())
    assert (state.policies.newest, state.assignments.newest) == (1001, 20)
    woken.clear()

    old = policy_view("policy", {"reserved": {"count": 4}}, version=10)
    restored = policy_view("restored", {}, version=11)
    state.policies.start_over()
    state.assignments.start_over()
    assert "node-1" in state.assignments, "nothing is absent while the list is read"
    state.replace_policies(Listed((old, restored), 12))
    state.replace_assignments(Listed((), 12))
    assert dict(state.policies) == {"policy": old, "restored": restored}
    assert dict(state.assignments) == {}
    assert set(woken) == {"node-1"}
    assert (state.policies.newest, state.assignments.newest) == (12, 12)
    state.put_policy(policy_body("policy", {"reserved": {"count": 6}}, version=13))
    assert state.policies["policy"].spec.reserved.count == 6
