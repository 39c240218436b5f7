<?php
const MAX_AGE_SECS = 300;
const SECRET_BYTES_MIN = 16;

/** $headers by lower-case name; $body must be the bytes as received (php://input). */
function verify(array $headers, string $body, string $secret, ?int $now = null): bool
{
    $suite = $headers['x-svc-signature-suite'] ?? '';
    $signature = $headers['x-svc-signature-256'] ?? '';
    $timestamp = $headers['x-svc-timestamp'] ?? '';
    $maxAge = $headers['x-svc-signature-max-age'] ?? '';
    $delivery = $headers['x-svc-delivery'] ?? '';
    $event = $headers['x-svc-event'] ?? '';
    $decimal = '/\A(0|[1-9][0-9]{0,14})\z/';
    $visible = '/\A[!-~]{1,255}\z/';
    if (strlen($secret) < SECRET_BYTES_MIN) return false;
    if ($suite !== 'svc-webhook-v1' || !preg_match('/\Asha256=[0-9a-f]{64}\z/', $signature)) return false;
    if (!preg_match($decimal, $timestamp) || !preg_match($decimal, $maxAge)) return false;
    if (!preg_match($visible, $delivery) || !preg_match($visible, $event)) return false;

    // HKDF-SHA256 (RFC 5869): one block is all that 32 bytes need.
    $extracted = hash_hmac('sha256', $secret, 'svc:webhook-mac:v1', true);
    $key = hash_hmac('sha256', "svc-webhook-mac-v1\x01", $extracted, true);
    $signed = implode("\n", [$suite, $timestamp, $maxAge, $delivery, $event, '']) . $body;
    if (!hash_equals('sha256=' . hash_hmac('sha256', $signed, $key), $signature)) return false;

    $age = ($now ?? time()) - (int) $timestamp;
    return $age >= 0 && $age <= min((int) $maxAge, MAX_AGE_SECS);
}
