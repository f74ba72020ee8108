-- Cycles through the paths of a file, given after "--"; prints one RESULT line.
local requests, next_one = {}, 0

function init(args)
  for path in io.lines(args[1]) do requests[#requests + 1] = wrk.format("GET", path) end
end

function request()
  next_one = next_one % #requests + 1
  return requests[next_one]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format("RESULT rps=%.0f p50=%.3f p99=%.3f errors=%d statuses=%d requests=%d\n",
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.timeout, e.status, summary.requests))
end
