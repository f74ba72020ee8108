"""What is taken away, from whom, and for how long. A fault is a function of the round's world, of the actor that it strikes (those that
strike all of them take none), and of the chance that says how; it ends before the function returns."""
import resource

from actors import KILLED, WITHOUT_MEMORY
from processes import Limited, Stopped, descriptors, family, virtual_size

DEFAULT_HOLD = 0.1, 0.5  # seconds that a fault lasts


def _hold(world, chance):
    world.pass_time(chance.uniform(*DEFAULT_HOLD))


def kill(world, actor, chance):
    actor.excuses.add(KILLED)
    actor.program.process.kill()
    _hold(world, chance)


def stop(world, actor, chance):
    with Stopped(family(actor.pid)):
        _hold(world, chance)


def few_descriptors(world, actor, chance):
    """Not a single one more than it has, or one or two."""
    more = chance.randrange(3)
    with Limited(actor.pid, resource.RLIMIT_NOFILE, lambda pid: sum(descriptors(pid).values()) + more):
        _hold(world, chance)


def small_address_space(world, actor, chance):
    actor.excuses.add(WITHOUT_MEMORY)
    more = chance.choice((0, 1 << 18, 1 << 22))
    with Limited(actor.pid, resource.RLIMIT_AS, lambda pid: virtual_size(pid) + more):
        _hold(world, chance)


def failing_memory(world, _, chance):
    """Of all actors, since they share the file that says so."""
    world.weather.add(WITHOUT_MEMORY)
    for actor in world.actors.values():
        actor.excuses.add(WITHOUT_MEMORY)
    world.refuse_memory(chance.choice((3, 50, 500, 5000)))
    try:
        _hold(world, chance)
    finally:
        world.refuse_memory(0)
        world.weather.discard(WITHOUT_MEMORY)


def full_disk(world, _, chance):
    with world.filled():
        _hold(world, chance)


def clock(world, _, chance):
    """Set an hour back or forth, for those who were started with a clock that can be set."""
    world.set_clock(chance.choice((-3600, 3600)))
    _hold(world, chance)
    world.set_clock(0)


def database_away(world, _, chance):
    world.database.stop()
    try:
        _hold(world, chance)
    finally:
        world.database.start()


def sessions_ended(world, _, chance):
    for _ in range(chance.randint(1, 5)):
        world.database.sql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = 'mapcache'")
        _hold(world, chance)


def database_stopped(world, _, chance):
    with Stopped(family(world.database.process.pid)):
        _hold(world, chance)


def origin_away(world, _, chance):
    """Its connections are cut, and new ones refused."""
    world.origin.kill()
    try:
        _hold(world, chance)
    finally:
        world.origin.start()


def origin_stopped(world, _, chance):
    with Stopped([world.origin.process.pid]):
        _hold(world, chance)


# Those of the first table strike one actor.
OF_ONE = {"kill": kill, "stop": stop, "descriptors": few_descriptors, "address space": small_address_space}
OF_ALL = {"failing memory": failing_memory, "full disk": full_disk, "clock": clock, "database away": database_away,
          "sessions ended": sessions_ended, "database stopped": database_stopped, "origin away": origin_away,
          "origin stopped": origin_stopped}


def plan(chance, actors):
    """The schedule of a round: each fault of all once, those of one on two different actors, in an order of chance."""
    steps = [(name, None) for name in OF_ALL]
    for name in OF_ONE:
        steps += [(name, actor) for actor in chance.sample(sorted(actors), 2)]
    chance.shuffle(steps)
    return [(name, actor, chance.randrange(2**32)) for name, actor in steps]


def strike(world, name, actor, chance):
    if name in OF_ALL:
        OF_ALL[name](world, None, chance)
    elif world.actors[actor].runs():
        OF_ONE[name](world, world.actors[actor], chance)
