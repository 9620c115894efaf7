"""Visitors who ask for one slow page, again as soon as it has come."""

from locust import FastHttpUser, constant, task


class Visitor(FastHttpUser):
    wait_time = constant(0)

    @task
    def page(self):
        self.client.get("/slow.php?40", name="page")
