using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

static class Receiver
{
    const long MaxAgeSecs = 300;
    const int SecretBytesMin = 16;
    static readonly Regex Decimal = new Regex(@"\A(0|[1-9][0-9]{0,14})\z");
    static readonly Regex Visible = new Regex(@"\A[!-~]{1,255}\z");
    static readonly Regex HexMac = new Regex(@"\Asha256=[0-9a-f]{64}\z");

    /// <summary>Headers by lower-case name; the body must be the bytes as received.</summary>
    public static bool Verify(
        IDictionary<string, string> headers, byte[] body, string secret, long nowSecs)
    {
        string suite = Header(headers, "signature-suite"), signature = Header(headers, "signature-256");
        string timestamp = Header(headers, "timestamp"), maxAge = Header(headers, "signature-max-age");
        string delivery = Header(headers, "delivery"), name = Header(headers, "event");
        if (Encoding.UTF8.GetByteCount(secret) < SecretBytesMin) return false;
        if (suite != "svc-webhook-v1" || !HexMac.IsMatch(signature)) return false;
        if (!Decimal.IsMatch(timestamp) || !Decimal.IsMatch(maxAge)) return false;
        if (!Visible.IsMatch(delivery) || !Visible.IsMatch(name)) return false;

        // HKDF-SHA256 (RFC 5869): one block is all that 32 bytes need.
        byte[] extracted = Mac(Encoding.UTF8.GetBytes("svc:webhook-mac:v1"), Encoding.UTF8.GetBytes(secret));
        byte[] key = Mac(extracted, Encoding.UTF8.GetBytes("svc-webhook-mac-v1\u0001"));
        string signed = string.Join("\n", suite, timestamp, maxAge, delivery, name, "");
        byte[] mac = Mac(key, Encoding.UTF8.GetBytes(signed).Concat(body).ToArray());
        string hex = "sha256=" + BitConverter.ToString(mac).Replace("-", "").ToLowerInvariant();
        if (!SameInFixedTime(hex, signature)) return false;

        long age = nowSecs - long.Parse(timestamp);
        return age >= 0 && age <= Math.Min(long.Parse(maxAge), MaxAgeSecs);
    }

    static string Header(IDictionary<string, string> headers, string name)
    {
        string value;
        return headers.TryGetValue("x-svc-" + name, out value) ? value : "";
    }

    static byte[] Mac(byte[] key, byte[] data)
    {
        using (var hmac = new HMACSHA256(key)) return hmac.ComputeHash(data);
    }

    /// <summary>On .NET Core, CryptographicOperations.FixedTimeEquals does the same.</summary>
    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
    static bool SameInFixedTime(string a, string b)
    {
        int different = a.Length ^ b.Length;
        for (int at = 0; at < a.Length && at < b.Length; at++) different |= a[at] ^ b[at];
        return different == 0;
    }
}
