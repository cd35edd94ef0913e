// Formats Lua files as .stylua.toml says, by StyLua's own library (build/stylua).
// usage: node scripts/lint/stylua.mjs [--write] FILE...
// Prints a line for each file that is formatted otherwise, and exits 1 when there was one; --write rewrites them.
import fs from "node:fs";
import { createRequire } from "node:module";

const root = new URL("../../", import.meta.url);
const stylua = createRequire(new URL("build/stylua/", root))("@johnnymorganz/stylua");

// What .stylua.toml may say: the enumeration of a name, or null for a number.
const OPTIONS = {
    syntax: stylua.LuaVersion,
    column_width: null,
    indent_type: stylua.IndentType,
    indent_width: null,
    quote_style: stylua.QuoteStyle,
    call_parentheses: stylua.CallParenType,
};

function config() {
    const made = stylua.Config.new();
    for (const line of fs.readFileSync(new URL(".stylua.toml", root), "utf8").split("\n")) {
        const [, name, text] = /^(\w+) = "?(\w+)"?$/.exec(line) ?? [];
        if (!name) continue;
        const value = OPTIONS[name] ? OPTIONS[name][text] : Number(text);
        if (!(name in OPTIONS) || value === undefined) throw new Error(`.stylua.toml: ${line}`);
        made[name] = value;
    }
    return made;
}

const write = process.argv.includes("--write");
let wrong = 0;
for (const path of process.argv.slice(2).filter((a) => a !== "--write")) {
    const text = fs.readFileSync(path, "utf8");
    const formatted = stylua.formatCode(text, config(), undefined, stylua.OutputVerification.None);
    if (formatted === text) continue;
    wrong++;
    console.log(`${path}: ${write ? "formatted" : "stylua formats it otherwise; make fmt does"}`);
    if (write) fs.writeFileSync(path, formatted);
}
process.exit(wrong > 0 && !write ? 1 : 0);
