--- One message of a weather mast becomes a row a sensor, in SI units.
--
-- The mast sends all its sensors in one record, in the units of its maker:
--
--     {"mast":"north","ts":1767225600000,"t_f":[68.0,-999],"wind_mph":10,"hpa":1013.25}
--
-- `map` makes rows (mast, sensor) of it: degrees Celsius, metres a second, pascal. -999 is the
-- maker's word for a broken sensor: such a value makes no row. A record without a time gets the
-- moment when it arrived, if the clock could be trusted then.
--
--     tarn create plant.weather --field 'mast STRING' --field 'sensor STRING' \
--         --field 'ts TIMESTAMP(3)' --field 'value DOUBLE' --field 'unit STRING' \
--         --primary-key mast,sensor --option bucket=1 --option tarn.script=scripts/split.lua

local BROKEN = -999

-- Member of the record: how its sensors are called, the unit, and the way there.
local CHANNELS = {
    { member = "t_f", sensor = "temperature", unit = "degC", factor = 5 / 9, offset = -32 },
    { member = "wind_mph", sensor = "wind", unit = "m/s", factor = 0.44704, offset = 0 },
    { member = "hpa", sensor = "pressure", unit = "Pa", factor = 100, offset = 0 },
}

local function add(rows, record, channel, index, value)
    if value == nil or value == BROKEN then
        return
    end
    rows[#rows + 1] = {
        mast = record.mast,
        sensor = channel.sensor .. index,
        ts = record.ts,
        value = (value + channel.offset) * channel.factor,
        unit = channel.unit,
    }
end

local m = {}

function m.map(record, meta)
    if not record.mast then
        error("a record without a mast", 0)
    end
    record.ts = record.ts or (meta.clock == "synced" and meta.received_ms or nil)
    local rows = {}
    for _, channel in ipairs(CHANNELS) do
        local values = record[channel.member]
        if type(values) == "table" then
            for index, value in ipairs(values) do
                add(rows, record, channel, "-" .. index, value)
            end
        else
            add(rows, record, channel, "", values)
        end
    end
    return rows
end

m.test = {
    {
        name = "a row a sensor",
        map = { { mast = "north", ts = 1, t_f = { 68.0, 32 }, hpa = 1013.25 } },
        gives = {
            { mast = "north", sensor = "temperature-1", ts = 1, value = 20, unit = "degC" },
            { sensor = "temperature-2", value = 0 },
            { sensor = "pressure", value = 101325, unit = "Pa" },
        },
    },
    {
        name = "broken sensors make none",
        map = { { mast = "north", ts = 1, t_f = { -999 }, wind_mph = 10 } },
        gives = { { sensor = "wind", value = 4.4704, unit = "m/s" } },
    },
    {
        name = "a time where there is none",
        map = { { mast = "north", wind_mph = 0 }, { clock = "synced", received_ms = 77 } },
        gives = { { sensor = "wind", ts = 77 } },
    },
    { name = "an empty message makes nothing", map = { { mast = "north" } }, gives = {} },
    { name = "whose is it?", map = { {} }, raises = "a record without a mast" },
}

return m
