--- One record of each machine out of three systems, each believed about other things.
--
-- The plant's PLC, the ERP and people's phones all send what they know of a machine. For each
-- column there is an order of belief; a value stays until one comes from a source that is believed
-- as much or more. Who said it stands beside it (`name_by`), so the next row can be judged. NULL
-- says nothing.
--
--     tarn create plant.machines --field 'id BIGINT' --field 'source STRING' \
--         --field 'name STRING' --field 'name_by STRING' --field 'place STRING' \
--         --field 'place_by STRING' --field 'firmware STRING' --field 'firmware_by STRING' \
--         --primary-key id --option bucket=1 --option tarn.script=scripts/golden.lua

-- Per column: the sources, the most believed first. Who isn't listed is not believed at all.
local BELIEF = {
    name = { "erp", "phone", "plc" },
    place = { "phone", "erp" },
    firmware = { "plc" },
}

local rank = {}
for column, sources in pairs(BELIEF) do
    rank[column] = {}
    for place, source in ipairs(sources) do
        rank[column][source] = place
    end
end

local COLUMNS = { "name", "place", "firmware" }

local function believed(column, source, before)
    local ranks = rank[column]
    return ranks[source] and (not before or ranks[source] <= (ranks[before] or math.huge))
end

local m = {}

function m.merge(now, row)
    local source = row.source
    for _, column in ipairs(COLUMNS) do
        local by = column .. "_by"
        if row[column] ~= nil and believed(column, source, now and now[by]) then
            row[by] = source
        else
            row[column], row[by] = now and now[column], now and now[by]
        end
    end
    return row
end

m.test = {
    {
        name = "what is known first stands",
        merge = { nil, { source = "plc", name = "M-17", firmware = "2.1" } },
        gives = { name = "M-17", name_by = "plc", firmware = "2.1", firmware_by = "plc" },
    },
    {
        name = "the ERP knows names better",
        merge = { { name = "M-17", name_by = "plc" }, { source = "erp", name = "Press 4" } },
        gives = { name = "Press 4", name_by = "erp" },
    },
    {
        name = "a phone does not",
        merge = {
            { name = "Press 4", name_by = "erp" },
            { source = "phone", name = "the loud one", place = "hall 2" },
        },
        gives = { name = "Press 4", name_by = "erp", place = "hall 2", place_by = "phone" },
    },
    {
        name = "NULL says nothing",
        merge = { { name = "Press 4", name_by = "erp" }, { source = "erp", place = "hall 1" } },
        gives = { name = "Press 4", place = "hall 1", place_by = "erp" },
    },
    {
        name = "who is not listed is not believed",
        merge = { nil, { source = "erp", firmware = "9.9" } },
        gives = function(row)
            return row.firmware == nil and row.firmware_by == nil
        end,
    },
}

return m
