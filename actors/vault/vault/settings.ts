/** [vault]: credentials, egress and SSH certificates. interface.md, Limits; decisions.md 15 and 19. */
import { isIP } from 'node:net'
import { z } from 'zod'
import {
  count,
  flag,
  nameServers,
  notes,
  path,
  seconds,
  timerSeconds,
} from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const SSH_VALIDITY_MAX_SECS = 3_600

export const vaultSettings = section(
  'vault',
  {
    egress_buffered_response_max_bytes: count(10_485_760).describe('Largest buffered answer.'),
    egress_body_max_bytes: count(33_554_432, 1, 33_554_432).describe('Largest raw request body.'),
    egress_json_max_bytes: count(8_388_608, 1, 33_554_432).describe('Largest JSON request.'),
    egress_idle_gap_secs: timerSeconds(90).describe('A stream without a byte for this long ends.'),
    egress_hop_timeout_secs: timerSeconds(300).describe('A relayed request ends after this long.'),
    egress_allow_non_standard_ports: flag(false).describe(
      'Ports other than 443; not in production.',
    ),
    egress_allow_private_networks: flag(false).describe(
      'Loopback and private addresses; not in production.',
    ),
    egress_ca_pem_path: path('test-ca.pem')
      .optional()
      .describe('Extra CA for upstream TLS; not in production.'),
    egress_dns_overrides: z
      .record(
        z.string().min(1),
        z.string().refine((value) => isIP(value) !== 0),
      )
      .register(notes, { words: 'a table of host names and IP addresses' })
      .default({})
      .describe('Host to address, before the address check; not in production.'),
    egress_dns_servers: nameServers().describe(
      'Resolvers of the names that callers choose; the system’s when empty.',
    ),
    lookups_per_tenant_max: count(16, 1, 512).describe(
      'Name look-ups of one tenant at a time, per thread; more wait.',
    ),
    egress_calls_per_agent_max: count(64, 1, 2048).describe('Calls of one agent at a time.'),
    egress_calls_per_tenant_max: count(256, 1, 2048).describe('Calls of one tenant at a time.'),
    egress_buffered_bytes_max: count(536_870_912).describe(
      'Bytes held for buffered answers, JSON requests and tables of redaction, in all.',
    ),
    egress_buffered_bytes_per_tenant_max: count(134_217_728).describe('The same of one tenant.'),
    egress_buffered_timeout_secs: timerSeconds(120).describe(
      'A call whose answer is buffered ends after this long.',
    ),
    ssh_default_validity_secs: seconds(300, SSH_VALIDITY_MAX_SECS).describe(
      'Validity of an SSH certificate when none is asked for.',
    ),
    ssh_max_validity_secs: seconds(3_600, SSH_VALIDITY_MAX_SECS).describe(
      'Longest validity that may be asked for.',
    ),
    max_credentials_per_tenant: count(0, 0).describe('0 is no limit.'),
  },
  {
    about: 'Third-party credentials and their use.',
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
