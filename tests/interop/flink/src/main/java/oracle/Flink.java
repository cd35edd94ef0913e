package oracle;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.flink.client.program.StreamContextEnvironment;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.DefaultExecutorServiceLoader;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.internal.TableResultInternal;
import org.apache.flink.table.data.RowData;
import org.apache.flink.util.CloseableIterator;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.flink.FlinkRowWrapper;
import org.apache.paimon.flink.LogicalTypeConversion;
import org.apache.paimon.types.RowType;

/** Flink SQL on one local cluster, as a co-process: see README.md. */
public final class Flink {

    private static final int SLOTS = 16;
    private static final long SECONDS_MAX = 120; // until a change that has to come counts as not coming

    private final PrintStream out;
    private final TableEnvironment batch;
    private final TableEnvironment streaming;
    private final Map<String, Following> followings = new HashMap<>();

    private Flink(MiniCluster cluster, PrintStream out) throws Exception {
        this.out = out;
        URI rest = cluster.getRestAddress().get();
        // procedures ask for an environment of their own
        StreamContextEnvironment.setAsContext(new DefaultExecutorServiceLoader(), client(rest), Flink.class.getClassLoader(), false, true);
        batch = environment(rest, EnvironmentSettings.newInstance().inBatchMode(), 2);
        streaming = environment(rest, EnvironmentSettings.newInstance().inStreamingMode(), 1);
    }

    private static Configuration client(URI rest) {
        Configuration conf = new Configuration();
        conf.setString("execution.target", "remote");
        conf.setString("execution.attached", "true");
        conf.setString("rest.address", rest.getHost());
        conf.setString("rest.port", String.valueOf(rest.getPort()));
        return conf;
    }

    /** Of a stream one reader keeps the order of the snapshots. */
    private static TableEnvironment environment(URI rest, EnvironmentSettings.Builder settings, int parallelism) {
        Configuration conf = client(rest);
        conf.setString("parallelism.default", String.valueOf(parallelism));
        conf.setString("table.dml-sync", "true");
        conf.setString("table.local-time-zone", "UTC");
        conf.setString("execution.checkpointing.interval", "200ms");
        conf.setString("restart-strategy.type", "none"); // what fails says so
        return TableEnvironment.create(settings.withConfiguration(conf).build());
    }

    private static MiniCluster cluster() throws Exception {
        Configuration conf = new Configuration();
        conf.setString("rest.bind-port", "0");
        conf.setString("rest.address", "127.0.0.1");
        conf.setString("taskmanager.memory.network.max", "64m");
        MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder()
                .setConfiguration(conf).setNumTaskManagers(1).setNumSlotsPerTaskManager(SLOTS).build());
        cluster.start();
        return cluster;
    }

    // ------------------------------------------------------------------ rows

    private static String text(RowData row, RowType type, boolean withKind) {
        InternalRow wrapped = new FlinkRowWrapper(row);
        String json = Canon.row(wrapped, type);
        return withKind ? "{\"kind\":\"" + wrapped.getRowKind().shortString() + "\",\"row\":" + json + "}" : json;
    }

    private static RowType type(TableResult result) {
        return LogicalTypeConversion.toDataType((org.apache.flink.table.types.logical.RowType)
                result.getResolvedSchema().toPhysicalRowDataType().getLogicalType());
    }

    private void sql(String statement) throws Exception {
        TableResultInternal result = (TableResultInternal) batch.executeSql(statement);
        RowType type = type(result);
        try (CloseableIterator<RowData> rows = result.collectInternal()) {
            while (rows.hasNext()) out.println(text(rows.next(), type, false));
        }
    }

    /** A streaming read beside whoever commits, until it is asked for its last change. */
    private final class Following extends Thread {
        private final TableResultInternal result;
        private final BlockingQueue<String> changes = new LinkedBlockingQueue<>();
        private volatile Throwable failure;

        Following(String statement) {
            result = (TableResultInternal) streaming.executeSql(statement);
            setDaemon(true);
        }

        @Override
        public void run() {
            RowType type = type(result);
            try (CloseableIterator<RowData> rows = result.collectInternal()) {
                while (rows.hasNext()) changes.add(text(rows.next(), type, true));
            } catch (Throwable e) {
                failure = e;
            }
            changes.add("");
        }

        /** Prints them up to `last`, which comes after all others. */
        void until(String last) throws Exception {
            for (String change = ""; !change.equals(last); ) {
                change = changes.poll(SECONDS_MAX, TimeUnit.SECONDS);
                if (change == null) throw new IllegalStateException("no such change within " + SECONDS_MAX + " s: " + last);
                if (change.isEmpty()) throw new IllegalStateException("the stream ended before " + last, failure);
                out.println(change);
            }
            result.getJobClient().get().cancel().get();
        }
    }

    // ------------------------------------------------------------------ commands

    private void catalog(List<String> words) {
        StringBuilder options = new StringBuilder();
        String warehouse = words.get(2);
        if (warehouse.startsWith("s3")) {
            // See Oracle.catalog; and a small server refuses to remove a folder that isn't empty, which a second S3 client tries for minutes.
            options.append(", 's3.multiobjectdelete.enable'='false', 's3.attempts.maximum'='3', 's3.directory.marker.retention'='keep'");
        }
        for (String pair : words.subList(3, words.size())) {
            int cut = pair.indexOf('=');
            options.append(", '").append(pair, 0, cut).append("'='").append(pair.substring(cut + 1)).append("'");
        }
        String create = "CREATE CATALOG " + words.get(1) + " WITH ('type'='paimon', 'warehouse'='" + warehouse + "'" + options + ")";
        for (TableEnvironment environment : List.of(batch, streaming)) {
            environment.executeSql(create);
        }
    }

    private void run(List<String> words) throws Exception {
        switch (words.get(0)) {
            case "catalog": catalog(words); break;
            case "sql": sql(words.get(1)); break;
            case "follow": {
                Following following = new Following(words.get(2));
                followings.put(words.get(1), following);
                following.start();
                break;
            }
            case "until": followings.remove(words.get(1)).until(words.get(2)); break;
            default: throw new IllegalArgumentException("unknown command " + words.get(0));
        }
    }

    private int tried(List<String> words) {
        try {
            run(words);
            return 0;
        } catch (Throwable e) {
            if (System.getenv("ORACLE_DEBUG") != null) e.printStackTrace();
            System.err.println("flink: " + Oracle.describe(e));
            return 3;
        }
    }

    public static void main(String[] args) throws Exception {
        java.util.TimeZone.setDefault(java.util.TimeZone.getTimeZone("UTC"));
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
        Flink flink = new Flink(cluster(), out);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            out.println("#rc " + flink.tried(Oracle.words(line)));
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
