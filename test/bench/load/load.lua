-- Load for wrk. Arguments: API key, "get" and a file with one path a line, or "post" and one path (and "keyed" to send
-- an Idempotency-Key, and what follows the artifact in the body). Prints one line of JSON.
local count = 0

function init(args)
  wrk.headers["authorization"] = "Bearer " .. args[1]
  if args[2] == "get" then
    local paths = {}
    for line in io.lines(args[3]) do paths[#paths + 1] = line end
    request = function() return wrk.format("GET", paths[math.random(#paths)]) end
  else
    post(args[3], args[4] == "keyed", args[5])
  end
end

-- Every body has another artifact: the first half of its hash differs between runs, the second within one.
function post(path, keyed, rest)
  math.randomseed(os.time() + tonumber(string.sub(tostring({}), 8)) % 1000000)
  local run = ""
  for _ = 1, 6 do run = run .. string.format("%08x", math.random(0, 2 ^ 31 - 1)) end
  wrk.headers["content-type"] = "application/json"
  request = function()
    count = count + 1
    if keyed then wrk.headers["idempotency-key"] = run .. count end
    return wrk.format("POST", path, nil, '{"artifact":{"sha256":"' .. run .. string.format("%016x", count)
      .. '"},' .. (rest or '"metadata":{"schema":"purl","purl":"pkg:npm/%40scope/name@1.2.3?arch=x64","run":' .. count .. '}}'))
  end
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f,"maxMs":%f,"failed":%d,"bytes":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, e.connect + e.read + e.write + e.timeout + e.status, summary.bytes))
end
