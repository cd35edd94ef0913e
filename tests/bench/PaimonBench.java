// The bench's rows into Paimon Java: avro, one bucket, a 16 MB write buffer, one long-lived stream writer.
//
//     PaimonBench ingest|scan FOLDER FILE.raw [OPTION=VALUE...]     options: of the table, when ingest makes it
//
// Paimon's own LocalFileIO syncs nothing; SyncFileIO does, so that a commit is as durable as everybody else's.

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import org.apache.paimon.CoreOptions.ChangelogProducer;
import org.apache.paimon.catalog.FileSystemCatalog;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.disk.IOManagerImpl;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.PositionOutputStream;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.StreamTableCommit;
import org.apache.paimon.table.sink.StreamTableWrite;
import org.apache.paimon.table.sink.StreamWriteBuilder;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.RowKind;

public class PaimonBench {
    static final int RECORD = 88;
    static final int COMMIT_ROWS = 100000;
    static final Identifier ID = Identifier.create("b", "t");

    /** LocalFileIO that syncs each file at close and the folder after a rename. */
    public static class SyncFileIO extends LocalFileIO {
        @Override
        public PositionOutputStream newOutputStream(Path path, boolean overwrite) throws IOException {
            File file = toFile(path);
            if (file.exists() && !overwrite) {
                throw new FileAlreadyExistsException("exists: " + path);
            }
            file.getParentFile().mkdirs();
            FileOutputStream out = new FileOutputStream(file);
            return new PositionOutputStream() {
                private boolean closed;

                @Override
                public long getPos() throws IOException {
                    return out.getChannel().position();
                }

                @Override
                public void write(int b) throws IOException {
                    out.write(b);
                }

                @Override
                public void write(byte[] b) throws IOException {
                    out.write(b);
                }

                @Override
                public void write(byte[] b, int offset, int size) throws IOException {
                    out.write(b, offset, size);
                }

                @Override
                public void flush() {}

                @Override
                public void close() throws IOException {
                    if (!closed) {
                        closed = true;
                        out.getFD().sync();
                        out.close();
                    }
                }
            };
        }

        @Override
        public boolean rename(Path from, Path to) throws IOException {
            boolean done = super.rename(from, to);
            if (done) {
                try (FileChannel folder = FileChannel.open(toFile(to).getParentFile().toPath(), StandardOpenOption.READ)) {
                    folder.force(true);
                }
            }
            return done;
        }
    }

    static GenericRow row(ByteBuffer buffer, int at) {
        byte[] device = new byte[16];
        buffer.get(at, device);
        int size = 0;
        while (size < 12 && buffer.get(at + 72 + size) != 0) {
            size++;
        }
        byte[] unit = new byte[size];
        buffer.get(at + 72, unit);
        GenericRow row = new GenericRow(RowKind.fromByteValue(buffer.get(at + 86)), 11);
        row.setField(0, BinaryString.fromBytes(device));
        row.setField(1, buffer.getInt(at + 64));
        row.setField(2, Timestamp.fromEpochMillis(buffer.getLong(at + 16)));
        for (int i = 0; i < 4; i++) {
            row.setField(3 + i, buffer.getDouble(at + 32 + 8 * i));
        }
        row.setField(7, buffer.getInt(at + 68));
        row.setField(8, buffer.getLong(at + 24));
        row.setField(9, BinaryString.fromBytes(unit));
        row.setField(10, buffer.get(at + 87) != 0);
        return row;
    }

    static void create(FileSystemCatalog catalog, int workload, String[] args) throws Exception {
        catalog.createDatabase("b", true);
        Schema.Builder schema = Schema.newBuilder()
                .column("device_id", DataTypes.STRING().notNull())
                .column("metric", DataTypes.INT().notNull())
                .column("ts", DataTypes.TIMESTAMP(3));
        for (int i = 1; i <= 4; i++) {
            schema.column("v" + i, DataTypes.DOUBLE());
        }
        schema.column("status", DataTypes.INT()).column("seq", DataTypes.BIGINT())
                .column("unit", DataTypes.VARCHAR(12)).column("ok", DataTypes.BOOLEAN())
                .primaryKey("device_id", "metric")
                .option("bucket", "1").option("file.format", "avro").option("write-buffer-size", "16 mb");
        if (workload == 4) {
            schema.option("sequence.field", "seq");
        }
        for (int i = 3; i < args.length; i++) {
            String[] option = args[i].split("=", 2);
            schema.option(option[0], option[1]);
        }
        catalog.createTable(ID, schema.build(), true);
    }

    static void ingest(FileStoreTable table, FileChannel input, String folder) throws Exception {
        new File(folder, "tmp").mkdirs();
        ByteBuffer buffer = ByteBuffer.allocate(RECORD * COMMIT_ROWS).order(ByteOrder.LITTLE_ENDIAN);
        StreamWriteBuilder builder = table.newStreamWriteBuilder().withCommitUser("bench");
        try (StreamTableWrite write = (StreamTableWrite) builder.newWrite().withIOManager(new IOManagerImpl(folder + "/tmp"));
                StreamTableCommit commit = builder.newCommit()) {
            Long latest = table.snapshotManager().latestSnapshotId();
            boolean waits = table.coreOptions().needLookup() && table.coreOptions().changelogProducer() != ChangelogProducer.NONE;
            for (long id = latest == null ? 1 : latest + 1; ; id++) {
                buffer.clear();
                while (buffer.hasRemaining() && input.read(buffer) >= 0) {}
                int count = buffer.position() / RECORD;
                if (count == 0) {
                    break;
                }
                for (int i = 0; i < count; i++) {
                    write.write(row(buffer, i * RECORD));
                }
                commit.commit(id, write.prepareCommit(waits || input.position() >= input.size(), id));
            }
        }
    }

    static void scan(FileStoreTable table) throws Exception {
        ReadBuilder builder = table.newReadBuilder();
        long[] sums = new long[5];
        try (RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan())) {
            reader.forEachRemaining(row -> {
                sums[0]++;
                sums[1] += row.getLong(8);
                sums[2] += row.getInt(7);
                for (int i = 0; i < 4; i++) {
                    double v = row.getDouble(3 + i) * 1000.0;
                    sums[3] += v < 0 ? -Math.round(-v) : Math.round(v);
                }
                sums[4] += row.getBoolean(10) ? 1 : 0;
            });
        }
        System.out.printf("n=%d seq=%d st=%d v=%d ok=%d%n", sums[0], sums[1], sums[2], sums[3], sums[4]);
    }

    public static void main(String[] args) throws Exception {
        String folder = new File(args[1]).getAbsolutePath();
        FileSystemCatalog catalog = new FileSystemCatalog(new SyncFileIO(), new Path("file://" + folder));
        try (FileChannel input = FileChannel.open(Paths.get(args[2]), StandardOpenOption.READ)) {
            ByteBuffer header = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
            input.read(header);
            if (args[0].equals("ingest")) {
                create(catalog, header.getInt(12), args);
                ingest((FileStoreTable) catalog.getTable(ID), input, folder);
            } else {
                scan((FileStoreTable) catalog.getTable(ID));
            }
        }
        System.exit(0);
    }
}
