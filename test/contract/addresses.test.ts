/**
 * All features that connect to given addresses, tested with all addresses and URLs that must not be reached. One row per
 * feature. All of them must connect through one dialer.
 */
import { once } from 'node:events'
import type { LookupAddress } from 'node:dns'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import test from 'ava'
import { anchors } from '../../actors/agents/agents/anchors.js'
import { createPoster } from '../../actors/platform/outbound-http/poster.js'
import { createSender } from '../../actors/webhooks/delivery/sender.js'
import { localSigner, UNSEALED } from '../../runtime/cli/webhooks/local-signer.js'
import {
  createBoundedFetch,
  type FetchFailed,
} from '../../actors/platform/outbound-http/bounded-fetch.js'
import { createDialer, type Resolver } from '../../actors/platform/outbound-http/dialer.js'
import { createDocuments } from '../../actors/platform/outbound-http/documents.js'
import { proxyErrorOf } from '../../actors/platform/outbound-http/failures.js'
import type { ProxySettings } from '../../actors/platform/outbound-http/proxy-settings.js'
import { judgeTarget } from '../../actors/platform/outbound-http/targets.js'
import { createUpstreams } from '../../actors/platform/outbound-http/upstreams.js'
import { openBreaches } from '../../actors/identity/passwords/breaches.js'
import { openCaptcha } from '../../actors/identity/sign-in/limits/captcha.js'
import { createTokenEndpoint } from '../../actors/vault/vault/token-endpoint.js'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import { systemClock as clock } from '../../runtime/kernel/clock.js'
import {
  ALLOWED_URLS,
  OWN_NAMES,
  OWN_URLS,
  REFUSED_ADDRESSES,
  REFUSED_URLS,
} from '../actors/platform/outbound-http/address-corpus.js'

/** The refusal in the words of the feature, or null if it would have connected. */
type Refusal = string | null
type Feature = {
  readonly name: string
  /** Requests a URL. `resolve` resolves all names. */
  readonly ask: (url: string, resolve: Resolver) => Promise<Refusal>
  /** False if the deployment fixes the host, and only its resolution is tested. */
  readonly takesUrls: boolean
}

const production = {
  egress_allow_private_networks: false,
  egress_allow_non_standard_ports: false,
  egress_ca_pem_path: undefined,
  egress_dns_overrides: {},
  own_names: OWN_NAMES,
}

/** Egress calls, directly or through a proxy, to which a refused target must not come. */
function egressThrough(name: string, connectTo?: 'address' | 'name'): Feature {
  const proxy: ProxySettings | undefined = connectTo && {
    enabled: true,
    url: 'http://127.0.0.1:9',
    no_proxy: [],
    connect_to: connectTo,
  }
  return {
    name,
    takesUrls: true,
    async ask(text, resolve) {
      const target = judgeTarget(text, { nonStandardPorts: false, privateNetworks: false })
      if (target.tag === 'refused') return target.fault
      const connect = createDialer({
        privateNetworks: false,
        ownNames: OWN_NAMES,
        dnsOverrides: {},
        resolve,
        http2: true,
        sharedReads: true,
        proxy,
      })
      const upstreams = createUpstreams(connect, undefined, { http2: true })
      const { origin, pathname } = target.url
      try {
        return await new Promise<Refusal>((answer) => {
          upstreams.of(origin, 'credential').dispatch(
            { method: 'GET', path: pathname },
            {
              onRequestStart() {},
              onResponseStart: () => answer(null),
              onResponseData() {},
              onResponseEnd: () => answer(null),
              onResponseError: (_, error) => answer(proxyErrorOf(error, false)),
            },
          )
        })
      } finally {
        await upstreams.destroy()
      }
    },
  }
}

const FEATURES: readonly Feature[] = [
  egressThrough('egress'),
  egressThrough('egress through a proxy', 'address'),
  egressThrough('egress through a proxy that gets names', 'name'),
  {
    name: 'webhooks',
    takesUrls: true,
    async ask(url, resolve) {
      const settings = {
        max_age_secs: 300,
        timeout_secs: 5,
        allow_private_networks: false,
        ca_pem_path: undefined,
        nonStandardPorts: false,
        ownNames: OWN_NAMES,
      }
      const sender = createSender({ settings, clock, resolve })
      const outgoing = {
        ...UNSEALED,
        url,
        secret: Buffer.from('a secret of 16 bytes'),
        previousSecret: null,
        deliveryId: 'd',
        eventType: 'webhook.test',
        body: '{}',
      }
      try {
        const result = await sender.send(outgoing, localSigner(), new AbortController().signal)
        return result.responseStatus === null ? result.error : null
      } finally {
        await sender.close()
      }
    },
  },
  {
    name: 'logout tokens and security events',
    takesUrls: true,
    async ask(url, resolve) {
      const poster = createPoster({ settings: production, resolve })
      const post = { headers: {}, body: 'token' }
      try {
        return (await poster.post('', url, post, new AbortController().signal)).error
      } finally {
        await poster.close()
      }
    },
  },
  {
    name: 'documents (key sets, sector files, metadata)',
    takesUrls: true,
    async ask(url, resolve) {
      const documents = createDocuments({ settings: production, clock, resolve })
      try {
        const fetched = await documents.fetch(url)
        return fetched.tag === 'failed' ? fetched.fault : null
      } finally {
        await documents.close()
      }
    },
  },
  {
    name: 'did:web anchors',
    // Their URLs are derived from names. The hosts of the table are tested below.
    takesUrls: false,
    async ask(url, resolve) {
      const verdict = await anchoredBy(`did:web:${new URL(url).host}`, resolve)
      return verdict.tag === 'anchor' || verdict.tag === 'busy' ? null : verdict.detail
    },
  },
  {
    name: 'token endpoints of managed OAuth',
    takesUrls: true,
    async ask(tokenUrl, resolve) {
      const endpoint = createTokenEndpoint({ settings: production, clock, resolve })
      try {
        const document = { token_url: tokenUrl, client_id: 'c', refresh_token: 'r' }
        const answer = await endpoint.ask({ kind: 'oauth', document }, null)
        return 'fault' in answer ? answer.fault : null
      } finally {
        await endpoint.close()
      }
    },
  },
  {
    name: 'sign-in with other providers',
    takesUrls: true,
    async ask(url, resolve) {
      const limits = { answerBytesMax: 1024, timeoutMs: 5_000 }
      const bounded = createBoundedFetch({ settings: production, resolve, ...limits })
      try {
        await bounded.fetch(url, { method: 'GET' })
        return null
      } catch (error) {
        return (error as FetchFailed).fault
      } finally {
        await bounded.close()
      }
    },
  },
  {
    name: 'captcha',
    takesUrls: false,
    async ask(url, resolve) {
      const challenge = {
        captcha_provider: 'turnstile',
        captcha_secret: 'secret',
        captcha_verify_url: url,
      } as const
      const captcha = openCaptcha({ challenge, settings: production, resolve })
      try {
        const verdict = await captcha.verify('response', '192.0.2.1')
        return verdict === 'unknown' ? verdict : null
      } finally {
        await captcha.close()
      }
    },
  },
  {
    name: 'breached passwords',
    takesUrls: false,
    async ask(url, resolve) {
      const breaches = openBreaches({ url, settings: production, resolve })
      try {
        const verdict = await breaches.check(new TextEncoder().encode('password'))
        return verdict === 'unknown' ? verdict : null
      } finally {
        await breaches.close()
      }
    },
  },
]

const key = createAgentKey()
async function anchoredBy(value: string, resolve: Resolver) {
  const documents = createDocuments({ settings: production, clock, resolve })
  try {
    const sought = { jwk: key.publicJwk, did: key.did, ownership: '' }
    return await anchors({ clock, documents, registries: [], groups: { of: () => [] } }).judge(
      { anchorType: 'did_web', anchorValue: value },
      sought,
      { tenantId: '', network: null },
    )
  } finally {
    await documents.close()
  }
}

const EVERY: LookupAddress = { address: '', family: 4 }
const answering =
  (...addresses: string[]): Resolver =>
  (_, done) =>
    done(
      null,
      addresses.map((address) => ({ ...EVERY, address, family: address.includes(':') ? 6 : 4 })),
    )
/** Fails for all names. */
const noLookups: Resolver = (name, done) => done(new Error(`${name} was looked up`), [])

/** The refusals that are accepted. */
const PROHIBITED = /prohibited|unknown|url_host|in lower case/

for (const feature of FEATURES) {
  test(`${feature.name}: a name that means a refused address is not connected to`, async (t) => {
    for (const address of REFUSED_ADDRESSES) {
      const refusal = await feature.ask('https://name.example/', answering(address))
      t.regex(String(refusal), PROHIBITED, address)
    }
    for (const answers of [
      ['93.184.215.14', '127.0.0.1'],
      ['93.184.215.14', '::1'],
      ['2606:4700:4700::1111', '10.0.0.1'],
    ]) {
      const refusal = await feature.ask('https://name.example/', answering(...answers))
      t.regex(String(refusal), PROHIBITED, answers.join())
    }
  })

  test(`${feature.name}: a name of this service is not looked up`, async (t) => {
    for (const url of OWN_URLS) t.regex(String(await feature.ask(url, noLookups)), PROHIBITED, url)
  })

  if (!feature.takesUrls) continue
  test(`${feature.name}: a URL of the table is refused for what it is`, async (t) => {
    for (const [url, fault] of REFUSED_URLS) {
      const refusal = await feature.ask(url, noLookups)
      t.is(refusal, fault, JSON.stringify(url).slice(0, 80))
    }
  })

  test(`${feature.name}: a URL outside of the table is looked up by its name`, async (t) => {
    for (const [url, host] of ALLOWED_URLS) {
      let asked = ''
      const resolve: Resolver = (name, done) => {
        asked = name
        done(Object.assign(new Error('no'), { code: 'ENOTFOUND' }), [])
      }
      t.is(await feature.ask(url, resolve), 'dns_error', url)
      t.is(asked, host)
    }
  })

  test(`${feature.name}: a name is looked up once, so a second answer gains nothing`, async (t) => {
    const server = createServer((socket) => socket.destroy())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => void server.close())
    t.truthy((server.address() as AddressInfo).port)
    let times = 0
    const changing: Resolver = (name, done) => {
      times += 1
      answering(times === 1 ? '192.0.2.1' : '127.0.0.1')(name, done)
    }
    t.regex(String(await feature.ask('https://rebinding.example/', changing)), PROHIBITED)
    t.is(times, 1)
  })
}

test('did:web anchors: a host or port of the table is refused before its name is looked up', async (t) => {
  const hosts = REFUSED_URLS.flatMap(([url, fault]) => {
    const authority = /^https:\/\/([^/?#]*)/.exec(url)?.[1]
    return ['url_host', 'url_port', 'url_userinfo'].includes(fault) && authority ? [authority] : []
  })
  t.true(hosts.length > 10)
  for (const host of hosts) {
    // An unescaped colon starts a path.
    for (const spelling of [host.replaceAll(':', '%3A'), encodeURIComponent(host)]) {
      const verdict = await anchoredBy(`did:web:${spelling}`, noLookups)
      t.is(verdict.tag, 'invalid_registration', spelling)
    }
  }
})

/** Modules that open connections, and their rows in the table. */
const MADE_IN: Readonly<Record<string, string>> = {
  'actors/vault/egress/actor.ts': 'egress',
  'actors/platform/outbound-http/outbound.ts': 'the settings of all of them',
  'actors/platform/outbound-http/poster.ts': 'logout tokens and security events',
  'actors/platform/outbound-http/documents.ts': 'documents (key sets, sector files, metadata)',
  'actors/platform/outbound-http/bounded-fetch.ts': 'sign-in with other providers',
  'actors/webhooks/delivery/sender.ts': 'webhooks',
  'actors/vault/vault/token-endpoint.ts': 'token endpoints of managed OAuth',
  'actors/identity/sign-in/limits/captcha.ts': 'captcha',
  'actors/identity/passwords/breaches.ts': 'breached passwords',
  // Addresses of the operator, which may be internal.
  'actors/commerce/payments/x402/facilitator.ts': 'the facilitator of the deployment',
  'actors/identity/sign-in/ways/phone/sender.ts': 'the provider of text messages',
  'actors/identity/tenant-assets/s3-store.ts': 'the object store of the deployment',
  'runtime/process/wiring/chain-nodes.ts': 'the chains of the deployment',
  'runtime/process/wiring/payment-providers.ts': 'the card provider of the deployment',
}

test('all modules that connect to given addresses have a row and use the dialer', (t) => {
  const root = new URL('../../../', import.meta.url).pathname
  const sources = ['actors', 'gateway', 'runtime', 'storage'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  )
  const making = (pattern: RegExp) =>
    sources.filter((name) => pattern.test(readFileSync(join(root, name), 'utf8'))).toSorted()
  const dialling = /^(?!export function ).*\b(?:createDialer|outbound)\(/m
  t.deepEqual(making(dialling), Object.keys(MADE_IN).toSorted())
  const bypassing =
    /(?:await|return|=) fetch\(|import \{[^}]*\b(?:connect|request|get)\b[^}]*\} from 'node:(?:https?|http2|net|tls)'/
  const outside = making(bypassing).filter((name) => name.startsWith('actors/'))
  // Connect to the mail server and the proxy of the deployment. The dialer alone opens tunnels.
  t.deepEqual(outside, [
    'actors/operations/mail/client.ts',
    'actors/platform/outbound-http/tunnels.ts',
  ])
  t.deepEqual(making(/\btunnelsOf\(/), [
    'actors/platform/outbound-http/dialer.ts',
    'actors/platform/outbound-http/tunnels.ts',
  ])
})
