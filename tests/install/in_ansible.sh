#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In a bare Debian: its own Ansible runs the role of the agent against this same Debian, with the packages of
# /packages and certificates; once more, when there is nothing to do; and with another daemon. Nothing is
# booted here: that units start is seen by in_machine.sh. Ends with "N passed, N failed, N skipped". For
# check_packages.sh.
#
# usage: in_ansible.sh     the role in /packages/ansible
set -u
export DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 ANSIBLE_ROLES_PATH=/packages/ansible ANSIBLE_NOCOLOR=1
passed=0
failed=0
play=/packages/play.yaml
config=/etc/fabrictrace/fabrictrace-agent.yaml

judge() # WHAT COMMAND...
{
    local what=$1
    shift
    if "$@" >/tmp/log 2>&1; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        tail -n 40 /tmp/log | sed 's/^/    | /'
    fi
}

set_up()
{
    apt-get -q update &&
        apt-get -q -y --no-install-recommends install ansible-core systemd openssl python3-apt || return
    printf '%s\n' '- hosts: gpu01' '  connection: local' '  roles: [fabrictrace_agent]' >$play
    echo 'gpu01 ansible_python_interpreter=/usr/bin/python3' >/packages/hosts
    mkdir /packages/certificates && cd /packages/certificates &&
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=fabrictrace \
            -keyout ca.key -out ca.pem &&
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -CA ca.pem -CAkey ca.key -subj /CN=gpu01 \
            -addext subjectAltName=URI:fabrictrace://agent/gpu01 -keyout gpu01.key -out gpu01.pem
}
run() # WORD...
{
    ansible-playbook -i /packages/hosts $play -e fabrictrace_packages=/packages \
        -e fabrictrace_certificates=/packages/certificates -e '{"fabrictrace_interfaces": ["lo"]}' "$@"
}
recap() # PATTERN WORD...
{
    local pattern=$1 says
    shift
    says=$(run "$@" 2>&1)
    echo "$says"
    grep -E "^gpu01 .* unreachable=0 +failed=0 " <<<"$says" | grep -E "$pattern"
}
syntax() { run --syntax-check; }
# What is there then: packages, a key that the agent's group alone may read, a configuration that the agent takes.
there()
{
    [ "$(dpkg-query -W -f '${db:Status-Status}\n' fabrictrace-agent fabrictrace-nccl-plugin | sort -u)" = installed ] &&
        [ "$(stat -c '%U:%G %a' /etc/fabrictrace/key.pem)" = 'root:fabrictrace 640' ] &&
        cmp /packages/certificates/gpu01.key /etc/fabrictrace/key.pem &&
        grep -q fabrictraced.example:9477 $config && fabrictrace-agent --check &&
        [ -e /etc/systemd/system/multi-user.target.wants/fabrictrace-agent.service ]
}
another()
{
    recap ' changed=1 ' -e fabrictrace_daemon=other.example:9477 &&
        grep -q 'RUNNING HANDLER .*Restart the agent' /tmp/log && grep -q other.example:9477 $config
}
# The agent's own check is asked before the file is replaced.
refused()
{
    ! recap '.' -e fabrictrace_daemon=nonsense && grep -q 'failed to validate' /tmp/log &&
        grep -q other.example:9477 $config
}

judge "a Debian with Ansible" set_up
judge "Ansible: the role is one" syntax
judge "Ansible: the role runs" recap ' changed=[1-9]'
judge "Ansible: the agent is there as told" there
judge "Ansible: a second run changes nothing" recap ' changed=0 '
judge "Ansible: another daemon, and the agent is restarted" another
judge "Ansible: a configuration that the agent refuses is not laid down" refused
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
