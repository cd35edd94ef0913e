--- A gateway in a plant: sensors by MQTT, a machine's log by file, and whoever else by HTTP.
--
--     tarn check scripts/gateway.lua        what is wrong with it, or what memory it needs
--     BROKER_PASSWORD=... tarn run scripts/gateway.lua
--
-- Paths begin in the folder of this file. Nothing but env() and file() is reachable from it.

return {
    warehouse = env("TARN_DATA", "../warehouse"),
    memory = "32M",
    listen = "127.0.0.1:7080", -- POST /tables/plant.levels/rows; elsewhere only with a token
    journal = { sync = "100ms or 256K", size = "64M" }, -- what can't be asked for again
    tables = {
        -- The newest level of each tank; a late reading never wins, one that comes twice shows not.
        ["plant.levels"] = {
            fields = { "tank STRING", "ts TIMESTAMP(3)", "level DOUBLE" },
            primary_key = "tank",
            options = { bucket = 1, ["sequence.field"] = "ts" },
            times = { ts = "ms" }, -- what a bare number in a record is
            commit = "30s or 5000 rows or 1M", -- what comes first
            dead_letters = "plant.letters", -- records that can't become rows
        },
        -- All that happened, a folder a day.
        ["plant.events"] = {
            fields = { "day DATE", "ts TIMESTAMP(3)", "what STRING", "amount DECIMAL(9,2)" },
            partition_by = "day",
            options = { bucket = -1, ["partition.legacy-name"] = false },
            unknown = "drop", -- members of a record that are no columns
        },
    },
    -- A copy for readers elsewhere, on a share or a disk; all that is committed comes there, too:
    -- lakes = { cloud = { target = "/mnt/lake", every = "5min", on_full = "gap" } },
    sources = {
        {
            kind = "mqtt",
            url = env("BROKER", "mqtt://127.0.0.1:1883"),
            user = "gateway",
            password = env("BROKER_PASSWORD", "only for a test"),
            subscribe = {
                { filter = "plant/+/level", table = "plant.levels", qos = 1 },
                { filter = "plant/+/event", table = "plant.events", qos = 2 }, -- once, exactly
            },
        },
        { kind = "file", path = "/var/log/press.csv", input = "csv", table = "plant.events" },
    },
}
