/** Unmodified programs under `svc run` (docs/guides/vault/svc-run.md). */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { digestOf } from '../../actors/vault/egress/upstream.js'
import {
  CREDENTIALS,
  delegatedToken,
  egressHouse,
  SECRET,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { THROUGH } from '../../support/fleet/through.js'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import { startGitUpstream } from '../../support/vault/git-upstream.js'
import { testWithProgram } from '../../support/service/programs.js'
import { svcRunOf } from '../../support/vault/svc-run.js'

const MIB = 2 ** 20
const resources = await egressHouse()
const { upstream, api } = resources
const setting = await settingOf(resources)
const scope = { scope: 'vault:list vault:read' }
const lister = await delegatedToken(resources.running, setting.direct, setting.agentId, scope)
const svcRun = await svcRunOf(resources, { delegated: lister })
test.after.always(async () => {
  await svcRun.end()
  await resources.end()
})

const at = (path: string) => `${upstream.origin}${path}`
const last = () => upstream.requests.at(-1)!
/** The header of an SDK with a placeholder key. */
const PLACEHOLDER = 'Bearer none-of-your-business'

test.serial('curl uses the credential of the host, found in the list', async (t) => {
  const command = ['curl', '-sS', '-i', '-H', `authorization: ${PLACEHOLDER}`, at('/headers')]
  const { code, out, err } = await svcRun.run([], command)
  t.is(code, 0, err)
  t.is(last().headers.authorization, `Bearer ${SECRET}`)
  t.regex(out, /HTTP\/1\.1 200/)
  t.regex(out, /proxy-status: svc-egress; received-status=200/i)
  t.true(out.includes('[redacted]'))
  t.false(out.includes(SECRET))
  t.regex(err, /^svc: deployment \S+ \(from --url\)\n$/)
})

test.serial('bodies are sent with and without length, and large responses arrive', async (t) => {
  const file = join(svcRun.home, 'body')
  await writeFile(file, Buffer.alloc(8 * MIB, 'svc '))
  const uploads = await svcRun.run(
    [],
    [
      'sh',
      '-c',
      `curl -sS --data-binary @${file} ${at('/hash')} && echo
       curl -sS -X POST -T - ${at('/hash')} < ${file}`,
    ],
  )
  const hashes = uploads.out
    .split('\n')
    .map((line) => (JSON.parse(line) as { sha256: string }).sha256)
  t.deepEqual(hashes, [digestOf(8 * MIB), digestOf(8 * MIB)], uploads.err)
  const lengths = upstream.requests.slice(-2).map(({ headers }) => headers['content-length'])
  t.deepEqual(lengths, [String(8 * MIB), undefined])
  const large = await svcRun.run(
    [],
    [
      'sh',
      '-c',
      `curl -sS ${at(`/bytes/${32 * MIB}`)} | sha256sum
       curl -sS -X POST -T - ${at('/echo')} < ${file} | sha256sum`,
    ],
  )
  const [down, echoed] = large.out.split('\n').map((line) => line.split(' ')[0])
  t.is(down, digestOf(32 * MIB), large.err)
  // nginx sends no more of a request once its response has begun.
  if (THROUGH !== 'nginx') t.is(echoed, digestOf(8 * MIB), large.err)
})

test.serial('responses are streamed, and an aborted one does not look complete', async (t) => {
  const access = ['--url', resources.running.baseUrl, '--token-file', svcRun.tokenFile]
  const words = ['run', ...access, '--', 'curl', '-sSN', at('/pause/held')]
  const running = svcRun.begin(words)
  t.is(await running.printed(/before/), 'before ')
  upstream.releaseEvents()
  t.is((await running.ended).out, 'before data: now\n\n')
  const broken = await svcRun.run([], ['curl', '-sS', at('/reset-in-body')])
  t.not(broken.code, 0)
})

test.serial('an invalid URL is reported with an example', async (t) => {
  const call = async (words: readonly string[]) => {
    const { code, out, err } = await svcRun.begin(words).ended
    t.is(code, 1)
    t.is(out, '')
    return err
  }
  const token = ['--token-file', svcRun.tokenFile]
  const service = ['--url', resources.running.baseUrl]
  for (const url of ['nonsense', 'localhost:8080', 'https://']) {
    for (const words of [
      ['run', '--url', url, ...token, '--', 'true'],
      ['egress', '--url', url, ...token, at('/echo')],
    ]) {
      t.true(
        (await call(words)).includes(
          `--url must be an address like https://auth.example.com, not ${url}`,
        ),
      )
    }
  }
  t.regex(await call(['egress', ...service, ...token, 'echo']), /URL like https:.*, not echo/)
})

testWithProgram('python3', 'python: urllib and requests', async (t) => {
  const script = `
import json, sys, urllib.request
with urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={"Authorization": "x"})) as answer:
    print(answer.status, "[redacted]" in answer.read().decode())
try:
    import requests
except ImportError:
    print("absent")
else:
    with requests.Session() as session:
        for _ in range(3):
            answer = session.get(sys.argv[1])
    print(answer.status_code, "[redacted]" in answer.text)
`
  const { out, err } = await svcRun.run([], ['python3', '-c', script, at('/headers')])
  const [standard, common] = out.split('\n')
  t.is(standard, '200 True', err)
  if (common === 'absent') t.log('requests is not installed: urllib alone was tried')
  else t.is(common, '200 True', err)
})

test.serial('node: fetch, https and many calls with keep-alive', async (t) => {
  const script = `
    import https from 'node:https'
    import http from 'node:http'
    const address = process.argv[1]
    const say = (...words) => process.stdout.write(words.join(' ') + '\\n')
    const answer = await fetch(address + '/echo', { method: 'POST', body: 'hello' })
    say(answer.status, await answer.text())
    const many = await Promise.all(Array.from({ length: 40 }, (_, n) =>
      fetch(address + '/echo', { method: 'POST', body: String(n) }).then((one) => one.text())))
    say(many.reduce((sum, text) => sum + Number(text), 0))
    https.get(address + '/headers', { headers: { authorization: 'x' } }, (got) => {
      let text = ''
      got.on('data', (part) => { text += part })
      got.on('end', () => {
        say(got.statusCode, text.includes('[redacted]'))
        const server = http.createServer((_, response) => response.end('local')).listen(0, '127.0.0.1', async () => {
          say(await (await fetch('http://127.0.0.1:' + server.address().port)).text())
          server.close(); server.closeAllConnections()
        })
      })
    })`
  const { out, err, code } = await svcRun.run(
    [],
    ['node', '--input-type=module', '-e', script, upstream.origin],
  )
  t.is(out, '200 hello\n780\n200 true\nlocal\n', err)
  t.is(code, 0)
})

test.serial('node: agents of the program, no agent, and worker threads', async (t) => {
  const script = `
    import https from 'node:https'
    import { once } from 'node:events'
    import { Worker } from 'node:worker_threads'
    const address = process.argv[1] + '/headers'
    const get = (agent) => new Promise((resolve, reject) =>
      https.get(address, { agent, headers: { authorization: 'x' } }, async (got) => {
        let text = ''
        for await (const part of got) text += part
        resolve(got.statusCode + ' ' + text.includes('[redacted]'))
      }).on('error', reject))
    const say = (word) => process.stdout.write(word + '\\n')
    class OwnAgent extends https.Agent {}
    for (const agent of [false, undefined, new https.Agent({ keepAlive: true }), new OwnAgent()])
      say(await get(agent))
    const code = 'import { parentPort, workerData } from "node:worker_threads";' +
      'fetch(workerData, { headers: { authorization: "x" } }).then((got) => got.text())' +
      '.then((text) => parentPort.postMessage(text.includes("[redacted]")))'
    const worker = new Worker(code, { eval: true, workerData: address })
    say(...await once(worker, 'message'))
    process.exit(0)`
  const command = ['node', '--input-type=module', '-e', script, upstream.origin]
  const { out, err, code } = await svcRun.run([], command)
  t.is(out, `${'200 true\n'.repeat(4)}true\n`, err)
  t.is(code, 0)
})

testWithProgram('wget', 'wget trusts the certificates of the run', async (t) => {
  const { out, err } = await svcRun.run([], ['wget', '-qO-', at('/headers')])
  t.regex(out, /\[redacted\]/, err)
})

testWithProgram('perl', 'perl: LWP trusts the certificates of the run', async (t) => {
  const script = `eval 'use LWP::UserAgent; use LWP::Protocol::https; 1' or do { print 'absent'; exit };
    my $agent = LWP::UserAgent->new; $agent->env_proxy;
    print $agent->get($ARGV[0])->decoded_content;`
  const { out, err } = await svcRun.run([], ['perl', '-e', script, at('/headers')])
  if (out === 'absent') t.log('LWP is not installed')
  else t.regex(out, /\[redacted\]/, err)
})

testWithProgram('php', 'php trusts the certificates of the run', async (t) => {
  const script = `echo ini_get('openssl.cafile') === getenv('SSL_CERT_FILE') ? 'same' : 'other';
    if (!function_exists('curl_init')) exit;
    $call = curl_init($argv[1]);
    curl_setopt($call, CURLOPT_RETURNTRANSFER, true);
    echo strpos(curl_exec($call), '[redacted]') === false ? ' other' : ' redacted';`
  const { out, err } = await svcRun.run([], ['php', '-r', script, '--', at('/headers')])
  t.regex(out, /^same( redacted)?$/, err)
})

testWithProgram(
  'git',
  'git: clone and push with a password that git never sees',
  async (t, git) => {
    const login = 'agent:canary-of-git'
    const server = await startGitUpstream(git, login)
    t.teardown(() => server.close())
    const basic = await settingOf(resources, { auth_scheme: 'basic', secret: login })
    const own = await svcRunOf(resources, basic)
    t.teardown(() => own.end())
    const folder = join(own.home, 'work')
    await mkdir(folder)
    const script = `cd ${folder} && git clone -q ${server.repository} a 2>&1 && cd a
    head -c 3000000 /dev/urandom > file && git add file
    git -c user.name=a -c user.email=a@example.com commit -qm first
    git push -q origin HEAD:main && cd .. && git clone -q -b main ${server.repository} b
    cmp a/file b/file && echo same`
    const credential = `${UPSTREAM_NAME}=${basic.credentialId},basic`
    const { out, err } = await own.run(['--credential', credential], ['sh', '-ec', script])
    t.regex(out, /same\n$/, err)
  },
)

test.serial(
  'a host without credential is refused with an explanation, unless it is passed through',
  async (t) => {
    const secured = new URL(upstream.origin)
    const { out, err } = await svcRun.run(
      [],
      [
        'sh',
        '-c',
        `curl -sS -i https://elsewhere.example/; echo
         curl -sS -o /dev/null -w 'plain %{http_code}\\n' http://127.0.0.2:1/
         curl -sS http://${secured.host}/echo`,
      ],
    )
    t.regex(out, /^HTTP\/1\.1 403 [^]*application\/problem\+json/m)
    t.regex(out, /There is no credential for elsewhere\.example/)
    t.regex(out, /proxy-status: svc-run; error=http_request_denied/)
    t.regex(err, /svc run: GET elsewhere\.example: There is no credential/)
    t.regex(out, /^plain 403$/m)
    t.regex(out, /A credential is used with https only/)
  },
)

test.serial('a passed-through response is unchanged', async (t) => {
  const { createServer } = await import('node:http')
  const server = createServer((request, response) => {
    if (request.method === 'GET') return response.end(`self ${request.url}`)
    let bytes = 0
    request.on('data', (chunk) => (bytes += chunk.length))
    return request.on('end', () => response.end(`${bytes} ${request.headers.expect}`))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve))
  t.teardown(() => void server.close())
  const { port } = server.address() as { port: number }
  const address = `http://127.0.0.2:${port}/x?y`
  const letThrough = (script: string) => svcRun.run(['--passthrough', '*'], ['sh', '-c', script])
  const body = join(svcRun.home, 'body')
  await writeFile(body, Buffer.alloc(MIB))
  const send = (expect: string, url: string) =>
    `curl -sSv -w '%{http_code}' -H 'Expect: ${expect}' --data-binary @${body} ${url}`
  const asking = await letThrough(send('100-continue', address))
  t.is(asking.out, `${MIB} undefined200`, asking.err)
  t.regex(asking.err, /100 Continue/)
  // A program that still sends gets the error of an unavailable host, and 407 without password.
  const stranger = `-x "http://\${http_proxy##*@}" ${address}`
  const { out, err } = await letThrough(`
    curl -sS ${address}; echo
    curl -sSp ${address}; echo
    ${send('', 'http://127.0.0.2:1/')}; echo
    ${send('', stranger)}; echo
    ${send('100-continue', stranger)}; echo
    curl -sS ${at('/headers')}`)
  const lines = out.split('\n')
  t.deepEqual(lines.slice(0, 2), ['self /x?y', 'self /x?y'], err)
  t.regex(out, /^.*502\n407\n407\n/m, err)
  // A host with a credential is never passed through.
  t.regex(lines.at(-1)!, /\[redacted\]/)
})

test.serial('with two credentials for a host one must be named', async (t) => {
  const both = await settingOf(resources)
  const second = await api.post(CREDENTIALS, both.operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Second',
    auth_scheme: 'query:key',
    allowed_hosts: [UPSTREAM_NAME],
    secret: 'second-canary',
  })
  const id = String(second.body['id'])
  await api.post(`${CREDENTIALS}/${id}/grants`, both.operator, {
    grantee_type: 'agent',
    grantee_id: both.agentId,
  })
  const token = await delegatedToken(resources.running, both.direct, both.agentId, scope)
  const own = await svcRunOf(resources, { delegated: token })
  t.teardown(() => own.end())
  const refused = await own.run([], ['curl', '-sS', at('/echo')])
  t.regex(refused.out, /There are 2 credentials/)
  t.true(refused.out.includes(id))
  // The list has its scheme; the program's own parameter is removed.
  const chosen = await own.run(
    ['--credential', `${UPSTREAM_NAME}=${id}`],
    ['curl', '-sS', at('/echo?a=1&KEY=mine&b=%2F')],
  )
  t.is(chosen.code, 0, chosen.err)
  t.is(last().url, '/echo?a=1&b=%2F&key=second-canary')
})

test.serial('svc egress uses the scheme of the named credential', async (t) => {
  const other = await settingOf(resources)
  const own = await svcRunOf(resources, { delegated: other.direct })
  t.teardown(() => own.end())
  const alone = await own.egress('--scheme', 'query:key', at('/echo'))
  t.is(alone.code, 1)
  t.regex(alone.err, /--scheme needs --credential/)
  const call = (scheme: string) =>
    own.egress('--credential', other.credentialId, '--scheme', scheme, at('/echo?a=1'))
  const called = await call('bearer')
  t.is(called.code, 0, called.err)
  t.is(last().headers.authorization, `Bearer ${SECRET}`)
  const wrong = await call('query:key')
  t.is(wrong.code, 1)
  t.regex(wrong.out, /auth_scheme differs from that of the credential/)
})

test.serial('errors of the service reach the program and stderr', async (t) => {
  const fallen = await settingOf(resources)
  const own = await svcRunOf(resources, { delegated: fallen.direct })
  t.teardown(() => own.end())
  const unlisted = await own.run([], ['true'])
  t.is(unlisted.code, 1)
  t.regex(unlisted.err, /name the credentials: --credential/)
  const named = ['--credential', `${UPSTREAM_NAME}=${fallen.credentialId}`]
  const command = ['curl', '-sS', '-w', '%{http_code}', at('/echo')]
  t.is((await own.run(named, command)).out, '200')
  await api.post(`/api/v1/vault/grants/${fallen.grantId}/revoke`, fallen.operator, {})
  const refused = await own.run(named, command)
  t.regex(refused.out, /policy_denied[^]*403$|not_found[^]*404$/)
  t.regex(refused.err, /svc-egress; error=http_request_denied/)
  const expired = await own.run(
    ['--url', resources.running.baseUrl, '--token-file', '/nowhere', ...named],
    ['true'],
  )
  t.is(expired.code, 1)
  await writeFile(own.tokenFile, 'not a token of anybody\n')
  t.regex((await own.run(named, ['true'])).err, /no token in/)
  await writeFile(own.tokenFile, 'nobodys\n')
  t.regex((await own.run(named, ['true'])).err, /answered 401/)
})

test.serial('a program that disconnects during an upload gets no error', async (t) => {
  const path = join(svcRun.home, 'slow')
  await writeFile(path, Buffer.alloc(16 * MIB))
  const slow = ['curl', '-sS', '--max-time', '1', '--limit-rate', '1M', '-T', path, at('/hash')]
  const { code, err } = await svcRun.run([], slow)
  t.is(code, 28, 'the time is over')
  t.notRegex(err, /svc run/)
})

test.serial('all valid header names arrive, and a too large body is 413', async (t) => {
  const odd = ['api_version: 2', 'x.y: z', 'x-plain: p', 'x-n: café'].flatMap((line) => [
    '-H',
    line,
  ])
  const { code, err } = await svcRun.run([], ['curl', '-sS', ...odd, at('/headers')])
  t.is(code, 0, err)
  const utf8 = Buffer.from('café').toString('latin1')
  t.like(last().headers, { api_version: '2', 'x.y': 'z', 'x-plain': 'p', 'x-n': utf8 })
  const raw = await svcRun.run([], ['curl', '-sS', '-w', '%{http_code}', at('/headers?q=é')])
  t.is(raw.out, '400')
  t.regex(raw.err, /invalid HTTP request/)
  const path = join(svcRun.home, 'large')
  await writeFile(path, Buffer.alloc(32 * MIB + 1))
  const large = `curl -sS -v -w '%{http_code}\\n' --data-binary @${path} ${at('/hash')}`
  // With 100-continue, sent at once, and without length.
  for (const how of ['', "-H 'Expect:'", "-H 'Expect:' -H 'Transfer-Encoding: chunked'"]) {
    const script = `for round in 1 2 3 4 5; do ${large} ${how}; done`
    const refused = await svcRun.run([], ['sh', '-c', script])
    t.is(refused.out.match(/"payload_too_large"[^}]*\}413\n/g)?.length, 5, refused.err)
    t.notRegex(refused.err, /100 Continue/)
    if (!how.includes('chunked')) t.regex(refused.err, /32 MiB/)
  }
  const small = ['-sS', '-w', '%{http_code}', '-H', 'Expect: 100-continue', '-d', 'x']
  t.regex(
    (await svcRun.run([], ['curl', '-v', ...small, at('/echo')])).err,
    /100 Continue[^]*200 OK/,
  )
})

test.serial('a token that is renewed in its file is used by the next call', async (t) => {
  const own = await svcRunOf(resources, { delegated: lister })
  t.teardown(() => own.end())
  const script = `curl -sS -o /dev/null -w '%{http_code} ' ${at('/echo')}
    cp ${own.tokenFile} ${own.home}/kept; echo invalid > ${own.tokenFile}
    curl -sS -o /dev/null -w '%{http_code} ' ${at('/echo')}
    cp ${own.home}/kept ${own.tokenFile}
    curl -sS -o /dev/null -w '%{http_code}' ${at('/echo')}`
  t.is((await own.run([], ['sh', '-c', script])).out, '200 401 200')
})

testCommands('the commands of docs/guides/vault/svc-run.md run unchanged', async (t) => {
  const page = docsPage(t, 'guides/vault/svc-run')
  const bin = join(svcRun.home, 'bin')
  await mkdir(bin)
  const main = new URL('../../../runtime/main.js', import.meta.url).pathname
  const file = join(bin, 'svc')
  await writeFile(file, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, { mode: 0o755 })
  const env = {
    PATH: `${bin}:${process.env['PATH']}`,
    HOME: svcRun.home,
    BASE: resources.running.baseUrl,
    TOKEN_FILE: svcRun.tokenFile,
    API: upstream.origin,
    API_HOST: UPSTREAM_NAME,
    CREDENTIAL: setting.credentialId,
  }
  const outputs = []
  for (const index of page.blocks('sh').keys()) outputs.push(await page.run('sh', index, env))
  t.deepEqual(outputs, ['hello', 'hello', 'hello', '200 hello'])
})
