/** Runs the receiver over lines of base64 fields: six headers, secret, now, body. */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;

final class Judge {
  private static final String[] NAMES = {
    "x-svc-signature-suite", "x-svc-signature-256", "x-svc-signature-max-age",
    "x-svc-timestamp", "x-svc-event", "x-svc-delivery"
  };

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] fields = line.split("\t", -1);
      Map<String, String> headers = new HashMap<>();
      for (int at = 0; at < NAMES.length; at += 1) {
        if (!fields[at].equals("-")) headers.put(NAMES[at], text(fields[at]));
      }
      byte[] body = Base64.getDecoder().decode(fields[8]);
      long now = Long.parseLong(text(fields[7]));
      System.out.println(Receiver.verify(headers, body, text(fields[6]), now));
    }
  }

  private static String text(String field) {
    return new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
  }
}
