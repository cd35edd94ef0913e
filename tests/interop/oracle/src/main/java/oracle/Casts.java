package oracle;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.paimon.casting.CastExecutor;
import org.apache.paimon.casting.CastExecutors;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeCasts;

/**
 * What reading an older file does to a value. Each line of the input is ["FROM","TO",[value,..]], values in canonical JSON; the
 * answer is "FROM TO how" (separated by tabs), then a line "value result" for each: a result is "!" where the cast throws. `how` is
 * "alter" when ALTER takes the pair, "read" when only a chain of ALTERs leads there, "none" when there is no cast. Dates and times
 * of day are numbers, instants "ms/nanos": all of them can be written so. With --canonical they are canonical JSON, too.
 */
final class Casts {
    @SuppressWarnings("unchecked")
    static int main(String file, boolean canonical, PrintStream out) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        for (String line : Files.readAllLines(Paths.get(file), StandardCharsets.UTF_8)) {
            JsonNode n = mapper.readTree(line);
            DataType from = Canon.type(n.get(0).asText(), new AtomicInteger());
            DataType to = Canon.type(n.get(1).asText(), new AtomicInteger());
            CastExecutor<Object, Object> cast = (CastExecutor<Object, Object>) CastExecutors.resolve(from, to);
            String how = cast == null ? "none" : DataTypeCasts.supportsCast(from, to, true) ? "alter" : "read";
            out.println(n.get(0).asText() + "\t" + n.get(1).asText() + "\t" + how);
            for (JsonNode v : n.get(2)) {
                if (cast == null) break;
                Object value = parse(v, from);
                String result;
                try {
                    result = text(cast.cast(value), to, canonical);
                } catch (RuntimeException e) {
                    result = "!";
                }
                out.println(text(value, from, canonical) + "\t" + result);
            }
        }
        return 0;
    }

    private static Object parse(JsonNode n, DataType type) {
        String s = n.asText();
        if (type.getTypeRoot().name().startsWith("TIMESTAMP") && s.contains("/")) {
            int slash = s.indexOf('/');
            return Timestamp.fromEpochMillis(Long.parseLong(s.substring(0, slash)), Integer.parseInt(s.substring(slash + 1)));
        }
        return Canon.parse(n, type);
    }

    private static String text(Object v, DataType type, boolean canonical) {
        if (canonical) return Canon.value(v, type);
        if (v instanceof Timestamp) {
            return "\"" + ((Timestamp) v).getMillisecond() + "/" + ((Timestamp) v).getNanoOfMillisecond() + "\"";
        }
        switch (type.getTypeRoot()) {
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return String.valueOf(v);
            default:
                return Canon.value(v, type);
        }
    }
}
