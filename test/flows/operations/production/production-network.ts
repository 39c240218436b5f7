/** Answers every name with one public address on 127.0.0.1:5300, and runs a program there. */
import { spawn } from 'node:child_process'
import { startDns } from '../../../support/storage/dns.js'

const dns = await startDns(5300)
dns.addresses.set('hooks.svc-receiver.net', ['93.184.216.34'])
const child = spawn(process.execPath, process.argv.slice(2), { stdio: 'inherit' })
child.on('close', (code) => process.exit(code ?? 1))
