# Runs the receiver over lines of base64 fields: six headers, secret, now, body.
require "base64"
require_relative "receiver"

NAMES = %w[
  x-svc-signature-suite x-svc-signature-256 x-svc-signature-max-age
  x-svc-timestamp x-svc-event x-svc-delivery
].freeze

STDIN.each_line do |line|
  fields = line.chomp.split("\t", -1)
  raw = fields.map { |field| field == "-" ? nil : Base64.strict_decode64(field) }
  headers = NAMES.zip(raw).reject { |_, value| value.nil? }.to_h
  secret, now, body = raw[6..]
  puts verify(headers, body, secret, now.to_i)
end
