<?php
// Runs the receiver over lines of base64 fields: six headers, secret, now, body.
require __DIR__ . '/receiver.php';

const NAMES = [
    'x-svc-signature-suite', 'x-svc-signature-256', 'x-svc-signature-max-age',
    'x-svc-timestamp', 'x-svc-event', 'x-svc-delivery',
];

while (($line = fgets(STDIN)) !== false) {
    $fields = explode("\t", rtrim($line, "\n"));
    $headers = [];
    foreach (NAMES as $at => $name) {
        if ($fields[$at] !== '-') $headers[$name] = base64_decode($fields[$at], true);
    }
    [$secret, $now, $body] = array_map(fn ($field) => base64_decode($field, true), array_slice($fields, 6));
    echo verify($headers, $body, $secret, (int) $now) ? "true\n" : "false\n";
}
