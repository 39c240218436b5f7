/** Types for Python and Go that are generated from the OpenAPI document compile, and read recorded answers. */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import test, { type ExecutionContext } from 'ava'
import { openapiDocument } from '../../gateway/apps/openapi/openapi.js'
import { routes } from '../../gateway/route-table.js'
import { installedPackages } from '../support/service/node-packages.js'
import { program } from '../support/service/programs.js'

const run = promisify(execFile)
const GENERATOR = 'docs/examples/clients/generate-types.mjs'

const { createApplication } = JSON.parse(
  readFileSync('gateway/apps/openapi/examples/applications.json', 'utf8'),
) as Record<string, { answer: { client_id: string } }>
const { answer } = createApplication!

const PYTHON = `
import json, svc_types
raw = json.load(open("answer.json"))
made = svc_types.Application.from_dict(raw)
assert made.to_dict() == raw, made.to_dict()
print(made.client_id)
try:
    svc_types.Application.from_dict({})
except (AssertionError, KeyError, TypeError):
    print("refused")
`
const GO = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"example.com/program/svc"
)

func main() {
	raw, err := os.ReadFile("answer.json")
	if err != nil {
		panic(err)
	}
	var made svc.Application
	if err := json.Unmarshal(raw, &made); err != nil {
		panic(err)
	}
	fmt.Println(made.ClientID)
}
`

/** It installs a package of 19 MB. */
function compiling(
  name: string,
  title: string,
  body: (t: ExecutionContext, path: string) => Promise<void>,
) {
  const path = program(name)
  if (path === undefined) test.skip(`${title} (skipped: ${name} is not installed)`, () => undefined)
  else test(title, (t) => body(t, path))
}

async function generated(
  t: ExecutionContext,
  language: string,
): Promise<{ folder: string; types: string }> {
  t.timeout(240_000)
  const packages = await installedPackages('quicktype-core-26.0.0', ['quicktype-core@26.0.0'])
  const folder = mkdtempSync(join(packages, 'generated-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const document = openapiDocument({ issuer: 'https://id.test', exposure: 'public', routes })
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document))
  writeFileSync(join(folder, 'answer.json'), JSON.stringify(answer))
  copyFileSync(GENERATOR, join(folder, 'generate.mjs'))
  const { stdout } = await run(process.execPath, ['generate.mjs', language, 'openapi.json'], {
    cwd: folder,
    maxBuffer: 16 * 1024 * 1024,
  })
  return { folder, types: stdout }
}

compiling('python3', 'generated Python types compile and read an answer', async (t, python) => {
  const { folder, types } = await generated(t, 'python')
  writeFileSync(join(folder, 'svc_types.py'), types)
  const { stdout } = await run(python, ['-B', '-c', PYTHON], { cwd: folder })
  t.deepEqual(stdout.trim().split('\n'), [answer.client_id, 'refused'])
})

compiling('go', 'generated Go types compile and read an answer', async (t, go) => {
  const { folder, types } = await generated(t, 'go')
  mkdirSync(join(folder, 'svc'))
  writeFileSync(join(folder, 'svc/types.go'), types)
  writeFileSync(join(folder, 'go.mod'), 'module example.com/program\n\ngo 1.19\n')
  writeFileSync(join(folder, 'main.go'), GO)
  const env = {
    ...process.env,
    GOCACHE: join(folder, 'cache'),
    GOFLAGS: '-mod=mod',
    GOPROXY: 'off',
  }
  await run(go, ['vet', './...'], { cwd: folder, env })
  const { stdout } = await run(go, ['run', '.'], { cwd: folder, env })
  t.is(stdout.trim(), answer.client_id)
})

test('the generator of types names the package that its test installs', (t) => {
  t.true(readFileSync(GENERATOR, 'utf8').includes('npm install quicktype-core@26.0.0'))
})
