"""Reads TopoJSON (as npm's world-atlas and us-atlas carry it) into polygons and into lines between them.

In a topology neighbours share their border: one arc, listed by both. So a border is found without any geometry, is drawn once
and not from both sides, and tells who lies on its sides. All coordinates are degrees, x east, y north, in arrays of n by 2."""
import json

import numpy


class Topology:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        scale, shift = (numpy.array(found["transform"][key]) for key in ("scale", "translate"))
        self.arcs = [numpy.cumsum(arc, axis=0) * scale + shift for arc in found["arcs"]]
        self.objects = {name: [Area(one) for one in of["geometries"]] for name, of in found["objects"].items()}

    def points(self, indices):
        """A line along arcs; ~n is arc n backwards. The end of one is the beginning of the next."""
        parts = [self.arcs[i] if i >= 0 else self.arcs[~i][::-1] for i in indices]
        return numpy.concatenate([parts[0], *(part[1:] for part in parts[1:])])

    def polygons(self, area):
        """Polygons of an area, each a list of rings, its outer one first, none across 180 degrees."""
        for polygon in area.polygons:
            yield from cut_polygon([self.points(ring) for ring in polygon])

    def lines(self, areas):
        """(points, number of the area on one side, that on the other or None) of each border, as long as it goes."""
        owners = {}
        for number, area in enumerate(areas):
            for ring in area.rings():
                for arc in ring:
                    owners.setdefault(max(arc, ~arc), []).append(number)
        for number, area in enumerate(areas):
            for ring in area.rings():
                for indices, other in runs(ring, lambda arc: beyond(owners[max(arc, ~arc)], number)):
                    if other is None or number < other:
                        for part in cut_line(self.points(indices)):
                            for piece in without_edge(part):
                                yield piece, number, other

    def neighbours(self, areas):
        """For each area the numbers of those that it touches along a line."""
        found = [set() for _ in areas]
        for _, one, other in self.lines(areas):
            if other is not None:
                found[one].add(other)
                found[other].add(one)
        return found


class Area:
    """One geometry of an object: polygons as lists of rings as lists of arc numbers."""

    def __init__(self, geometry):
        self.id = geometry.get("id", "")
        self.name = geometry.get("properties", {}).get("name", "")
        kinds = {"Polygon": lambda arcs: [arcs], "MultiPolygon": list}
        self.polygons = kinds.get(geometry["type"], lambda arcs: [])(geometry.get("arcs"))

    def rings(self):
        return (ring for polygon in self.polygons for ring in polygon)


def beyond(owners, number):
    return next((owner for owner in owners if owner != number), None)


def runs(ring, key):
    """Pieces of a ring with the same key, as (arcs, key); a piece does not end where the ring happens to begin."""
    keys = [key(arc) for arc in ring]
    start = next((i for i in range(len(ring)) if keys[i] != keys[i - 1]), 0)
    piece = []
    for i in [*range(start, len(ring)), *range(start)]:
        if piece and keys[i] != piece[-1][1]:
            yield [ring[j] for j, _ in piece], piece[-1][1]
            piece = []
        piece.append((i, keys[i]))
    yield [ring[j] for j, _ in piece], piece[-1][1]


def unwrapped(points):
    """Without jumps from 180 to -180: longitudes go on beyond."""
    result = points.copy()
    result[1:, 0] -= 360 * numpy.cumsum(numpy.round(numpy.diff(points[:, 0]) / 360))
    return result


def closed(ring):
    """Ends where it begins, also where rounding of the file left a step; not if it goes once around the earth."""
    if (ring[0] == ring[-1]).all() or abs(ring[-1, 0] - ring[0, 0]) > 180:
        return ring
    return numpy.concatenate([ring, ring[:1]])


def cut_polygon(rings):
    """A polygon across 180 degrees becomes one on each side. One around a pole goes down to it."""
    rings = [closed(unwrapped(ring)) for ring in rings]
    for index, ring in enumerate(rings):
        if abs(ring[-1, 0] - ring[0, 0]) > 180:  # once around the earth
            pole = numpy.copysign(90, ring[:, 1].mean())
            rings[index] = numpy.concatenate([ring, [[ring[-1, 0], pole], [ring[0, 0], pole], ring[0]]])
    for turn in turns(rings[0]):
        sides = [clipped(clipped(ring - [360 * turn, 0], -180, 1), 180, -1) for ring in rings]
        if len(sides[0]) > 3:
            yield [side for side in sides if len(side) > 3]


def turns(points):
    """How often the earth is gone around, from the least to the most."""
    low, high = points[:, 0].min(), points[:, 0].max()
    return range(int(numpy.floor((low + 180) / 360)), int(numpy.ceil((high - 180) / 360)) + 1)


def clipped(ring, limit, sign):
    """What of a closed ring has x * sign >= limit * sign (Sutherland and Hodgman's algorithm for one side)."""
    inside = (ring[:, 0] - limit) * sign >= 0
    if inside.all() or not inside.any():
        return ring if inside.all() else ring[:0]
    result = []
    for i in range(len(ring) - 1):
        if inside[i]:
            result.append(ring[i])
        if inside[i] != inside[i + 1]:
            result.append(ring[i] + (ring[i + 1] - ring[i]) * (limit - ring[i, 0]) / (ring[i + 1, 0] - ring[i, 0]))
    return numpy.array([*result, result[0]])


def cut_line(points):
    """Parts of a line between -180 and 180."""
    points = unwrapped(points)
    part, turn = [points[0]], numpy.floor((points[0, 0] + 180) / 360)
    for before, after in zip(points, points[1:]):
        now = numpy.floor((after[0] + 180) / 360)
        if now != turn:
            limit = 360 * max(now, turn) - 180
            share = 0 if after[0] == before[0] else (limit - before[0]) / (after[0] - before[0])
            edge = before + (after - before) * min(max(share, 0), 1)
            yield numpy.array([*part, edge]) - [360 * turn, 0]
            part, turn = [edge], now
        part.append(after)
    if len(part) > 1:
        yield numpy.array(part) - [360 * turn, 0]


def without_edge(points):
    """Parts of a line that do not run along 180 degrees: there polygons were cut, that is no coast."""
    edge = abs(abs(points[:, 0]) - 180) < 1e-9
    bad = numpy.flatnonzero(edge[1:] & edge[:-1])
    begin = 0
    for last in [*bad, len(points) - 1]:
        if last > begin:
            yield points[begin:last + 1]
        begin = last + 1


def square_kilometres(rings):
    """Of a polygon on the sphere: the area under each edge, as if its latitude went evenly."""
    total = 0
    for index, ring in enumerate(rings):
        x, y = numpy.radians(ring[:, 0]), numpy.sin(numpy.radians(ring[:, 1]))
        area = abs(numpy.sum(numpy.diff(x) * (y[1:] + y[:-1]) / 2)) * 6371.0 ** 2
        total += area if index == 0 else -area
    return total


def colours(neighbours):
    """A number for each area, other than those of its neighbours: the one with the most colours around it first (Brelaz)."""
    chosen = {}
    while len(chosen) < len(neighbours):
        def rank(number):
            return len({chosen[n] for n in neighbours[number] if n in chosen}), len(neighbours[number]), -number

        number = max((n for n in range(len(neighbours)) if n not in chosen), key=rank)
        taken = {chosen[n] for n in neighbours[number] if n in chosen}
        free = [colour for colour in range(len(taken) + 1) if colour not in taken]
        # Of the first five the rarest: else most areas would have the same.
        counts = {colour: sum(1 for used in chosen.values() if used == colour) for colour in range(5) if colour not in taken}
        chosen[number] = min(counts, key=counts.get) if counts else free[0]
    return [chosen[number] for number in range(len(neighbours))]
