-- wrk asks the queries of a file of JSON lines, as `run.py --write FILE` makes it:
--   wrk -t 2 -c 8 -d 30s --latency -s deploy/load/queries.lua http://127.0.0.1:8000 -- FILE [API_KEY]
-- Each line is {"path": "...", "body": {...}}, in this order and on one line.

local queries = {}
local place = 0
local threads = 0

function setup(thread)
  thread:set("offset", threads * 37)
  threads = threads + 1
end

function init(arguments)
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Accept"] = "application/json"
  if arguments[2] then
    wrk.headers["x-api-key"] = arguments[2]
  end
  for line in io.lines(arguments[1]) do
    local path, body = line:match('^{"path": "([^"]*)", "body": (.*)}%s*$')
    if path then
      queries[#queries + 1] = wrk.format("POST", path, nil, body)
    end
  end
  place = offset
end

function request()
  place = place + 1
  return queries[place % #queries + 1]
end
