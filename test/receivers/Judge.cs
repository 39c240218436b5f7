// Runs the receiver over lines of base64 fields: six headers, secret, now, body.
using System;
using System.Collections.Generic;
using System.Text;

static class Judge
{
    static readonly string[] Names =
    {
        "x-svc-signature-suite", "x-svc-signature-256", "x-svc-signature-max-age",
        "x-svc-timestamp", "x-svc-event", "x-svc-delivery",
    };

    static void Main()
    {
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            string[] fields = line.Split('\t');
            var headers = new Dictionary<string, string>();
            for (int at = 0; at < Names.Length; at++)
                if (fields[at] != "-") headers[Names[at]] = Text(fields[at]);
            bool genuine = Receiver.Verify(
                headers, Convert.FromBase64String(fields[8]), Text(fields[6]), long.Parse(Text(fields[7])));
            Console.WriteLine(genuine ? "true" : "false");
        }
    }

    static string Text(string field) => Encoding.UTF8.GetString(Convert.FromBase64String(field));
}
