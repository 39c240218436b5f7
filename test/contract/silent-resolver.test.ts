/**
 * Every feature that looks up names which callers choose, against name servers that never answer: the look-up ends
 * with the feature's word for it, and names of others are found while it hangs.
 */
import test from 'ava'
import { anchors } from '../../actors/agents/agents/anchors.js'
import {
  createBoundedFetch,
  type FetchFailed,
} from '../../actors/platform/outbound-http/bounded-fetch.js'
import { createDocuments } from '../../actors/platform/outbound-http/documents.js'
import { proxyErrorOf } from '../../actors/platform/outbound-http/failures.js'
import { outbound } from '../../actors/platform/outbound-http/outbound.js'
import { createUpstreams } from '../../actors/platform/outbound-http/upstreams.js'
import { createTokenEndpoint } from '../../actors/vault/vault/token-endpoint.js'
import { createSender } from '../../actors/webhooks/delivery/sender.js'
import { localSigner, UNSEALED } from '../../runtime/cli/webhooks/local-signer.js'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import { systemClock as clock } from '../../runtime/kernel/clock.js'
import { startDns } from '../support/storage/dns.js'

const HANGING = 6
/** An address that no feature connects to, which distinguishes an answer of the name server from a timeout. */
const PRIVATE_ADDRESS = '10.0.0.1'
const PROHIBITED = /prohibited/
const TIMED_OUT = /dns_timeout/

const dns = await startDns()
dns.silentBelow = '.silent.test'
dns.addresses.set('name.answering.test', [PRIVATE_ADDRESS])
test.after.always(() => dns.close())

const settings = {
  egress_allow_private_networks: false,
  egress_allow_non_standard_ports: false,
  egress_ca_pem_path: undefined,
  egress_dns_overrides: {},
  egress_dns_servers: [dns.server],
  own_names: ['id.example'],
}

type Ask = (url: string) => Promise<string | null>
/** Opens a feature as the service does. `ask` returns what the feature says when it did not connect. */
type Feature = { readonly ask: Ask; readonly close: () => Promise<void> }

const FEATURES: Readonly<Record<string, () => Feature>> = {
  egress() {
    const { dialer } = outbound(settings, { http2: true, sharedReads: true })
    const upstreams = createUpstreams(dialer, undefined, { http2: true })
    return {
      ask: (url) =>
        new Promise((answer) => {
          upstreams.of(new URL(url).origin, 'credential').dispatch(
            { method: 'GET', path: '/' },
            {
              onRequestStart() {},
              onResponseStart: () => answer(null),
              onResponseData() {},
              onResponseEnd: () => answer(null),
              onResponseError: (_, error) => answer(proxyErrorOf(error, false)),
            },
          )
        }),
      close: () => upstreams.destroy(),
    }
  },
  webhooks() {
    const sender = createSender({
      clock,
      settings: {
        max_age_secs: 300,
        timeout_secs: 5,
        allow_private_networks: false,
        ca_pem_path: undefined,
        nonStandardPorts: false,
        ownNames: settings.own_names,
        names: { servers: settings.egress_dns_servers },
      },
    })
    const outgoing = {
      ...UNSEALED,
      secret: Buffer.from('a secret of 16 bytes'),
      previousSecret: null,
      deliveryId: 'd',
      eventType: 'webhook.test',
      body: '{}',
    }
    return {
      ask: async (url) => {
        const { responseStatus, error } = await sender.send(
          { ...outgoing, url },
          localSigner(),
          new AbortController().signal,
        )
        return responseStatus === null ? error : null
      },
      close: () => sender.close(),
    }
  },
  'documents (key sets, sector files, metadata)'() {
    const documents = createDocuments({ settings, clock })
    return {
      ask: async (url) => {
        const fetched = await documents.fetch(url)
        return fetched.tag === 'failed' ? fetched.fault : null
      },
      close: () => documents.close(),
    }
  },
  'did:web anchors'() {
    const documents = createDocuments({ settings, clock })
    const key = createAgentKey()
    return {
      ask: async (url) => {
        const anchor = {
          anchorType: 'did_web',
          anchorValue: `did:web:${new URL(url).host}`,
        } as const
        const sought = { jwk: key.publicJwk, did: key.did, ownership: '' }
        const verdict = await anchors({
          clock,
          documents,
          registries: [],
          groups: { of: () => [] },
        }).judge(anchor, sought, { tenantId: '', network: null })
        return verdict.tag === 'anchor' || verdict.tag === 'busy' ? null : verdict.detail
      },
      close: () => documents.close(),
    }
  },
  'token endpoints of managed OAuth'() {
    const endpoint = createTokenEndpoint({ settings, clock })
    return {
      ask: async (tokenUrl) => {
        const document = { token_url: tokenUrl, client_id: 'c', refresh_token: 'r' }
        const answer = await endpoint.ask({ kind: 'oauth', document }, null)
        return 'fault' in answer ? answer.fault : null
      },
      close: () => endpoint.close(),
    }
  },
  'sign-in with other providers'() {
    const bounded = createBoundedFetch({ settings, answerBytesMax: 1024, timeoutMs: 10_000 })
    return {
      ask: (url) =>
        bounded.fetch(url, { method: 'GET' }).then(
          () => null,
          (error: unknown) => (error as FetchFailed).fault,
        ),
      close: () => bounded.close(),
    }
  },
}

for (const [name, open] of Object.entries(FEATURES)) {
  test(`${name}: a silent name server holds up no other name, and the look-up ends`, async (t) => {
    t.timeout(60_000)
    const { ask, close } = open()
    t.teardown(close)
    let ended = 0
    const hanging = Array.from({ length: HANGING }, async (_, index) => {
      const refusal = await ask(`https://s${index}-${name.length}.silent.test/`)
      ended += 1
      return refusal
    })
    t.regex(String(await ask('https://name.answering.test/')), PROHIBITED)
    t.true(ended < HANGING, 'the look-ups of the silent names still hang')
    for (const refusal of await Promise.all(hanging)) t.regex(String(refusal), TIMED_OUT)
  })
}
