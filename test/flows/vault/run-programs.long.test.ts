/** More programs under `svc run`, wrong options, and the commands of its guide. `run.test.ts` has what every run does. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import {
  delegatedToken,
  egressHouse,
  SECRET,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
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
test.after.always(() => svcRun.end())

const at = (path: string) => `${upstream.origin}${path}`
const last = () => upstream.requests.at(-1)!

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

testWithProgram('wget', 'wget trusts the certificates of the run', async (t) => {
  const { out, err } = await svcRun.run([], ['wget', '-qO-', at('/headers')])
  t.regex(out, /\[redacted\]/, err)
})

const LWP = ['-MLWP::UserAgent', '-MLWP::Protocol::https']
testWithProgram(
  'perl',
  'perl: LWP trusts the certificates of the run',
  async (t) => {
    const script = `my $agent = LWP::UserAgent->new; $agent->env_proxy;
      print $agent->get($ARGV[0])->decoded_content;`
    const { out, err } = await svcRun.run([], ['perl', ...LWP, '-e', script, at('/headers')])
    t.regex(out, /\[redacted\]/, err)
  },
  [...LWP, '-e', '1'],
)

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
  t.regex(wrong.out, /auth_scheme differs from the scheme of the credential/)
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

test.serial('a body that is too large is a 413, however it is sent', async (t) => {
  const path = join(svcRun.home, 'large')
  await writeFile(path, Buffer.alloc(32 * MIB + 1))
  const large = `curl -sS -v -w '%{http_code}\\n' --data-binary @${path} ${at('/hash')}`
  // With 100-continue, sent immediately, and without length.
  for (const how of ['', "-H 'Expect:'", "-H 'Expect:' -H 'Transfer-Encoding: chunked'"]) {
    const script = `for round in 1 2 3 4 5; do ${large} ${how}; done`
    const refused = await svcRun.run([], ['sh', '-c', script])
    t.is(refused.out.match(/"payload_too_large"[^}]*\}\s*413\n/g)?.length, 5, refused.err)
    t.notRegex(refused.err, /100 Continue/)
    if (!how.includes('chunked')) t.regex(refused.err, /32 MiB/)
  }
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
