--- A plant's planners have a job that reads the lake; it should start when there is something new.
--
-- The broker tells them: a message for each table they work with, kept by the broker, so that who
-- starts late knows, too. Alarms come to a topic of their own; what is only an archive nobody has
-- to know of. While the clock is wrong the message doesn't say when it was. The lake says whom:
-- `lakes = { cloud = { target = "s3://...", policy = "told.lua",
-- notify = { url = "mqtt://127.0.0.1:1883", topic = "plant/lake" } } }`; a table that has it as its
-- script has it for itself:
--
--     tarn create plant.readings --field 'dev STRING' --field 'ts TIMESTAMP(3)' \
--         --field 'temp DOUBLE' --primary-key dev --option bucket=1 \
--         --option tarn.script=scripts/told.lua

local upload = require("tarn.upload")

local m = {}

m.upload = upload.every(5)

function m.uploaded(event)
    if event.table:find("^archive%.") then
        return nil
    end
    local when = event.clock == "synced" and event.now_ms or "null"
    return {
        payload = ('{"table":"%s","from":%d,"to":%d,"ms":%s}'):format(
            event.table,
            event.first,
            event.snapshot,
            when
        ),
        topic = event.table == "plant.alarms" and "plant/lake/alarms" or nil,
        retain = true,
    }
end

local NEW = { lake = "cloud", table = "plant.readings", first = 7, snapshot = 9, now_ms = 1000 }

m.test = {
    {
        name = "three snapshots in one message",
        uploaded = { NEW },
        gives = { payload = '{"table":"plant.readings","from":7,"to":9,"ms":1000}', retain = true },
    },
    {
        name = "to the configuration's topic",
        uploaded = { NEW },
        gives = function(message)
            return message.topic == nil
        end,
    },
    {
        name = "alarms have their own",
        uploaded = { { table = "plant.alarms" } },
        gives = { topic = "plant/lake/alarms" },
    },
    {
        name = "a clock that isn't right says nothing",
        uploaded = { { table = "plant.readings", snapshot = 2, clock = "unset" } },
        gives = { payload = '{"table":"plant.readings","from":2,"to":2,"ms":null}' },
    },
    { name = "the archive", uploaded = { { table = "archive.readings" } }, gives = nil },
    {
        name = "uploads go on as ever",
        upload = { { pending = { count = 1, oldest = 7, newest = 7, age_s = 300 } } },
        gives = "now",
    },
}

return m
