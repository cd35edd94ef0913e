--- A gateway with a SIM card has so much a day, and spends it on what matters first.
--
-- By day only alarms are worth a connection; the rest goes at night, slowly. A day has 50 MB and
-- 2000 requests, on the free link of the workshop none of that counts. When the disk fills up, all
-- of it goes. The whole lake has this policy with
-- `lakes = { cloud = { target = "s3://...", policy = "budget.lua" } }, metered = { "wwan*" }`;
-- a table that has it as its script decides for itself:
--
--     tarn create plant.pumps --field 'pump STRING' --field 'ts TIMESTAMP(3)' \
--         --field 'flow DOUBLE' --primary-key pump --option bucket=1 \
--         --option tarn.script=scripts/budget.lua

local upload = require("tarn.upload")

local m = {}

--- Something of this table is pending.
local function has(table)
    return function(state)
        for _, name in ipairs(state.tables) do
            if name == table then
                return "now"
            end
        end
        return "wait"
    end
end

local SOMETIMES = upload.any(has("plant.alarms"), upload.window("22:00", "05:00"))

m.upload = upload.urgent(
    upload.by_link(
        upload.all(
            SOMETIMES,
            upload.budget({ bytes = 50e6, requests = 2000 }),
            upload.rate("64K/s"),
            upload.tables("plant.alarms", "plant.pumps")
        )
    )
)

local ONE = { count = 1, oldest = 7, newest = 7, bytes = 1000, age_s = 10 }
local SIM = { up = true, metered = true }
local NOON, NIGHT = 12 * 3600000, 23 * 3600000
local PUMPS = { "plant.pumps" }
local BOTH = { "plant.pumps", "plant.alarms" }

m.test = {
    { name = "nothing to do", upload = { {} }, gives = "wait" },
    { name = "a free link", upload = { { pending = ONE, link = { up = true } } }, gives = "now" },
    {
        name = "pumps wait for the night",
        upload = { { pending = ONE, link = SIM, local_ms = NOON, tables = PUMPS } },
        gives = { wait = 10 * 3600 },
    },
    {
        name = "and go slowly then",
        upload = { { pending = ONE, link = SIM, local_ms = NIGHT, tables = PUMPS } },
        gives = { bytes = 50000000, requests = 2000, rate = "64K/s", tables = { "plant.pumps" } },
    },
    {
        name = "an alarm doesn't wait, and goes first",
        upload = { { pending = ONE, link = SIM, local_ms = NOON, tables = BOTH } },
        gives = { tables = { "plant.alarms", "plant.pumps" } },
    },
    {
        name = "the day's budget is spent",
        upload = {
            {
                pending = ONE,
                link = SIM,
                local_ms = NIGHT,
                tables = PUMPS,
                spent = { day = { bytes = 3, requests = 2000 } },
            },
        },
        gives = { wait = 3600 },
    },
    {
        name = "a full disk goes first",
        upload = {
            {
                pending = ONE,
                link = SIM,
                local_ms = NOON,
                tables = PUMPS,
                disk = { free = 1000, reserve = 1000 },
            },
        },
        gives = "now",
    },
}

return m
