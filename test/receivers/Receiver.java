import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

final class Receiver {
  private static final long MAX_AGE_SECS = 300;
  private static final int SECRET_BYTES_MIN = 16;

  /** Headers by lower-case name; the body must be the bytes as received. */
  static boolean verify(Map<String, String> headers, byte[] body, String secret, long nowSecs)
      throws GeneralSecurityException {
    String suite = headers.getOrDefault("x-svc-signature-suite", "");
    String signature = headers.getOrDefault("x-svc-signature-256", "");
    String timestamp = headers.getOrDefault("x-svc-timestamp", "");
    String maxAge = headers.getOrDefault("x-svc-signature-max-age", "");
    String delivery = headers.getOrDefault("x-svc-delivery", "");
    String event = headers.getOrDefault("x-svc-event", "");
    String decimal = "0|[1-9][0-9]{0,14}";
    String visible = "[!-~]{1,255}";
    if (utf8(secret).length < SECRET_BYTES_MIN) return false;
    if (!suite.equals("svc-webhook-v1") || !signature.matches("sha256=[0-9a-f]{64}")) return false;
    if (!timestamp.matches(decimal) || !maxAge.matches(decimal)) return false;
    if (!delivery.matches(visible) || !event.matches(visible)) return false;

    // HKDF-SHA256 (RFC 5869): one block is all that 32 bytes need.
    byte[] extracted = hmac(utf8("svc:webhook-mac:v1"), utf8(secret));
    byte[] key = hmac(extracted, utf8("svc-webhook-mac-v1\u0001"));
    String signed = String.join("\n", suite, timestamp, maxAge, delivery, event, "");
    byte[] mac = hmac(key, utf8(signed), body);
    byte[] sent = HexFormat.of().parseHex(signature.substring("sha256=".length()));
    if (!MessageDigest.isEqual(mac, sent)) return false;

    long age = nowSecs - Long.parseLong(timestamp);
    return age >= 0 && age <= Math.min(Long.parseLong(maxAge), MAX_AGE_SECS);
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] hmac(byte[] key, byte[]... parts) throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    for (byte[] part : parts) mac.update(part);
    return mac.doFinal();
  }
}
