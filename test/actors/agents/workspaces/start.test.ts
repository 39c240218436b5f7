import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import test from 'ava'
import * as fc from 'fast-check'
import { FRAMEWORKS } from '../../../../actors/agents/workspaces/protocol.js'
import { envBlock, startSnippet } from '../../../../actors/agents/workspaces/actor.js'

const workspace = {
  issuer: 'https://auth.svc.example',
  egressUrl: 'https://auth.svc.example:8443',
  tenant: { id: 't', name: 'Acme sandbox', slug: 'acme-sandbox', environment: 'sandbox' as const },
  application: {
    id: 'a',
    clientId: 'a',
    clientSecret: 'svcs_secret' as string | null,
    audience: 'urn:svc:application:a',
    redirectUris: ['https://app.example/callback?x=1&y=2'],
    tokenEndpointAuthMethod: 'client_secret_basic',
  },
}

test('the environment block has every variable of the sample, as dotenv', (t) => {
  t.deepEqual(parseEnv(envBlock(workspace)), {
    SVC_ISSUER: 'https://auth.svc.example',
    SVC_EGRESS_URL: 'https://auth.svc.example:8443',
    SVC_CLIENT_ID: 'a',
    SVC_CLIENT_SECRET: 'svcs_secret',
    SVC_TENANT_ID: 't',
    SVC_TENANT_SLUG: 'acme-sandbox',
    SVC_AUDIENCE: 'urn:svc:application:a',
    SVC_REDIRECT_URI: 'https://app.example/callback?x=1&y=2',
  })
})

test('without a secret there is no line for it, without a redirect URI an empty one', (t) => {
  const application = { ...workspace.application, clientSecret: null, redirectUris: [] }
  const block = envBlock({ ...workspace, application })
  t.false(block.includes('SVC_CLIENT_SECRET'))
  t.true(block.endsWith('SVC_REDIRECT_URI=\n'))
})

test('every valid redirect URI survives a shell', (t) => {
  const uri = fc.stringMatching(/^https:\/\/a\.example\/[!-~]{0,20}$/)
  t.notThrows(() =>
    fc.assert(
      fc.property(uri, (redirectUri) => {
        const application = { ...workspace.application, redirectUris: [redirectUri] }
        const script = `${envBlock({ ...workspace, application })}printf %s "$SVC_REDIRECT_URI"`
        return execFileSync('sh', ['-c', script], { encoding: 'utf8' }) === redirectUri
      }),
      { numRuns: 25 },
    ),
  )
})

for (const framework of FRAMEWORKS) {
  test(`the sample for ${framework} requests a token, verifies one and contains no value`, (t) => {
    const text = startSnippet(framework)
    for (const name of ['SVC_ISSUER', 'SVC_CLIENT_ID', 'SVC_CLIENT_SECRET', 'SVC_AUDIENCE']) {
      t.true(text.includes(name), name)
    }
    t.true(text.includes('/oauth/token'))
    t.true(text.includes('/.well-known/jwks.json'))
    t.true(text.includes('SVC_TENANT_ID'))
    t.false(text.includes('${'))
  })
}

test('an unknown framework gets the generic sample', (t) => {
  t.is(startSnippet('fortran'), startSnippet('generic'))
  t.is(startSnippet('constructor'), startSnippet('generic'))
})

// Each sample for Node is two files joined by a comment with the name of the second.
for (const framework of ['nextjs', 'express', 'fastify', 'remix', 'sveltekit', 'generic']) {
  test(`the files of the sample for ${framework} are JavaScript`, (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-snippet-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const files = startSnippet(framework).split(/^\/\/ (?=\S+\.(?:m?js|jsx)$)/m)
    for (const [index, text] of files.entries()) {
      const file = join(folder, `${index}.mjs`)
      writeFileSync(file, `// ${text}`)
      t.notThrows(() => execFileSync(process.execPath, ['--check', file], { stdio: 'pipe' }))
    }
  })
}
