import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Puts Java's text behind each line "bits python". */
public class Floats {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String bits = line.substring(0, line.indexOf(' '));
            System.out.println(line + " " + (args[0].equals("double")
                    ? Double.toString(Double.longBitsToDouble(Long.parseUnsignedLong(bits, 16)))
                    : Float.toString(Float.intBitsToFloat(Integer.parseUnsignedInt(bits, 16)))));
        }
    }
}
