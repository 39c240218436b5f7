/** [vault]: credentials, egress proxy and SSH certificates. */
import { isIP } from 'node:net'
import { z } from 'zod'
import {
  count,
  flag,
  nameServers,
  notes,
  readFilePath,
  seconds,
  timerSeconds,
} from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const SSH_VALIDITY_MAX_SECS = 3_600

export const vaultSettings = section(
  'vault',
  {
    egress_buffered_response_max_bytes: count(10_485_760).describe(
      'Largest buffered response, in bytes.',
    ),
    egress_body_max_bytes: count(33_554_432, 1, 33_554_432).describe(
      'Largest raw request body, in bytes.',
    ),
    egress_json_max_bytes: count(8_388_608, 1, 33_554_432).describe(
      'Largest JSON request, in bytes.',
    ),
    egress_idle_gap_secs: timerSeconds(90).describe(
      'A relay without a byte in either direction for this long ends.',
    ),
    egress_head_timeout_secs: timerSeconds(30).describe(
      'Time for the response head of a streamed call, after its request is sent. Interim responses do not count.',
    ),
    egress_hop_timeout_secs: timerSeconds(300).describe('Time limit of a relayed request.'),
    egress_allow_non_standard_ports: flag(false).describe(
      'Allow ports other than 443. Not allowed in production.',
    ),
    egress_allow_private_networks: flag(false).describe(
      'Allow loopback and private addresses. Not allowed in production.',
    ),
    egress_ca_pem_path: readFilePath('test-ca.pem')
      .optional()
      .describe('Additional CA for TLS of upstreams. Not allowed in production.'),
    egress_dns_overrides: z
      .record(
        z.string().min(1),
        z.string().refine((value) => isIP(value) !== 0),
      )
      .register(notes, { words: 'a table of host names and IP addresses' })
      .default({})
      .describe(
        'Host name to IP address; the address is still checked. Not allowed in production.',
      ),
    egress_dns_servers: nameServers().describe(
      'DNS servers for host names that callers choose. Empty: the servers of the system.',
    ),
    lookups_per_tenant_max: count(16, 1, 512).describe(
      'Concurrent name look-ups per tenant and thread. Others wait.',
    ),
    egress_calls_per_agent_max: count(64, 1, 2048).describe('Concurrent calls per agent.'),
    egress_calls_per_tenant_max: count(256, 1, 2048).describe('Concurrent calls per tenant.'),
    egress_buffered_bytes_max: count(536_870_912).describe(
      'Memory for buffered responses, JSON requests and redaction tables, in bytes.',
    ),
    egress_buffered_bytes_per_tenant_max: count(134_217_728).describe(
      'Memory for the same per tenant, in bytes.',
    ),
    egress_buffered_timeout_secs: timerSeconds(120).describe(
      'Time limit of a call with a buffered response.',
    ),
    egress_unrecorded_calls_max: count(128, 0, 4096).describe(
      'Calls of a caller, grant and process that may be sent a few milliseconds before they are recorded. 0 records every call before it is sent.',
    ),
    approval_ttl_secs: seconds(600, 86_400).describe(
      'Time in which a person may answer a call that needs an approval, and then the agent may repeat it.',
    ),
    approvals_per_agent_max: count(20, 1, 1_000).describe(
      'Calls per agent that wait for a person. Denied ones count until they expire.',
    ),
    approvals_per_tenant_max: count(500, 1, 100_000).describe('The same per tenant.'),
    egress_calls_stream_secs: seconds(300, 3_600).describe(
      'Longest stream of GET /api/v1/egress/calls/stream. Clients connect again.',
    ),
    ssh_default_validity_secs: seconds(300, SSH_VALIDITY_MAX_SECS).describe(
      'Default validity of an SSH certificate.',
    ),
    ssh_max_validity_secs: seconds(3_600, SSH_VALIDITY_MAX_SECS).describe(
      'Longest validity of an SSH certificate.',
    ),
    connection_ttl_secs: seconds(600, 3_600).describe(
      'How long a person can answer a request to connect an account.',
    ),
    max_credentials_per_tenant: count(0, 0).describe(
      'Active credentials per tenant. 0 for no limit.',
    ),
  },
  {
    about: 'Third-party credentials, egress proxy and SSH certificates.',
    rules: [
      {
        keys: ['ssh_default_validity_secs', 'ssh_max_validity_secs'],
        holds: (vault) => vault.ssh_default_validity_secs <= vault.ssh_max_validity_secs,
        rule: 'be at most vault.ssh_max_validity_secs',
        fix: 'lower ssh_default_validity_secs or raise ssh_max_validity_secs',
      },
    ],
  },
)

export type VaultSettings = SettingsOf<typeof vaultSettings>

/** The limits of calls that wait for a person. */
export const approvalLimitsOf = (vault: VaultSettings) => ({
  ttlSecs: vault.approval_ttl_secs,
  perAgentMax: vault.approvals_per_agent_max,
  perTenantMax: vault.approvals_per_tenant_max,
})
