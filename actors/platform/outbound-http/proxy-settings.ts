/** [proxy]: the HTTP proxy of the operator's network that outbound requests go through. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { flag, list, notes, secret, text, url } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const PROXY_URL = 'http://proxy.example.com:3128'

export const proxySettings = section(
  'proxy',
  {
    enabled: flag(false).describe(
      'Outbound requests go through an HTTP proxy: webhooks, egress, key sets, sign-in at other providers, payments.',
    ),
    url: url(['http:', 'https:'], 'an http or https URL', PROXY_URL)
      .optional()
      .describe('The proxy, which accepts CONNECT (RFC 9110 section 9.3.6).'),
    username: text('svc').optional().describe('Account at the proxy (Basic).'),
    password: secret().optional().describe('Its password.'),
    no_proxy: list(
      z
        .string()
        .refine(isBypass)
        .register(notes, { words: 'a host name, an IP address or a CIDR' }),
    )
      .default([])
      .describe(
        'Hosts that are reached without the proxy: names with their subdomains, addresses, CIDRs.',
      ),
    connect_to: z
      .enum(['address', 'name'])
      .default('address')
      .describe(
        'What CONNECT names. address: the checked address of the host. name: the name, for a proxy that filters by name; it resolves the name once more.',
      ),
  },
  {
    about:
      'An outbound proxy. The service resolves and checks the name of each target itself, as without a proxy.',
    rules: [
      {
        keys: ['url', 'enabled'],
        holds: ({ enabled, url }) => !enabled || url !== undefined,
        rule: 'be set when proxy.enabled is true',
        fix: 'set proxy.url',
      },
      {
        keys: ['url'],
        holds: ({ url }) => url === undefined || new URL(url).password === '',
        rule: 'not contain credentials',
        fix: 'set proxy.username and SVC_PROXY__PASSWORD',
      },
    ],
  },
)

export type ProxySettings = SettingsOf<typeof proxySettings>

function isBypass(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/')
  const version = isIP(address)
  if (version === 0) return /^\.?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(value)
  if (rest.length > 0) return false
  if (bits === undefined) return true
  return /^[0-9]{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
}
